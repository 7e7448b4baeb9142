import { describe, expect, it } from 'vitest'
import { chooseDefault } from './probe.ts'

const memory = { available: false, detail: '' }
const gvisor = { class: 'gvisor', available: true, detail: 'runsc 1', memory } as const
const runc = { class: 'runc', available: true, detail: 'runc 1', memory } as const
const noGvisor = { class: 'gvisor', available: false, detail: 'install runsc', memory } as const
const noRunc = { class: 'runc', available: false, detail: 'install runc', memory } as const

describe('the default isolation class', () => {
  it('is gVisor if gVisor passes its probe', () => {
    expect(chooseDefault([gvisor, runc], 'auto').defaultClass).toBe('gvisor')
  })

  it('is runc if gVisor is not available, and the reason is given', () => {
    expect(chooseDefault([noGvisor, runc], 'auto')).toEqual({
      defaultClass: 'runc',
      defaultReason: 'gVisor is not available (install runsc)',
    })
  })

  it('is the class that the operator configured', () => {
    expect(chooseDefault([gvisor, runc], 'runc').defaultClass).toBe('runc')
  })

  it('is an error with installation advice if the configured class is not available', () => {
    expect(() => chooseDefault([noGvisor, runc], 'gvisor')).toThrow(/install runsc/)
    expect(() => chooseDefault([noGvisor, noRunc], 'auto')).toThrow(/install runsc; runc: install runc/)
  })
})
