import { describe, expect, it } from 'vitest'
import { chooseDefault } from './probe.ts'

const memory = { available: false, detail: '' }
const gvisor = { class: 'gvisor', available: true, detail: 'runsc 1', memory } as const
const runc = { class: 'runc', available: true, detail: 'runc 1', memory } as const
const noGvisor = { class: 'gvisor', available: false, detail: 'install runsc', memory } as const
const noRunc = { class: 'runc', available: false, detail: 'install runc', memory } as const

describe('the isolation class of machines that ask for none', () => {
  it('is gVisor where it passed its probe', () => {
    expect(chooseDefault([gvisor, runc], 'auto').defaultClass).toBe('gvisor')
  })

  it('is runc where gVisor cannot be had, and the reason says why', () => {
    expect(chooseDefault([noGvisor, runc], 'auto')).toEqual({
      defaultClass: 'runc',
      defaultReason: 'gVisor is not available (install runsc)',
    })
  })

  it('is the operator’s choice', () => {
    expect(chooseDefault([gvisor, runc], 'runc').defaultClass).toBe('runc')
  })

  it('a choice that cannot be had is refused with what to install', () => {
    expect(() => chooseDefault([noGvisor, runc], 'gvisor')).toThrow(/install runsc/)
    expect(() => chooseDefault([noGvisor, noRunc], 'auto')).toThrow(/install runsc; runc: install runc/)
  })
})
