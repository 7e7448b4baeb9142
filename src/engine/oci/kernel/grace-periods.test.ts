import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { hastenGracePeriods, leaveGracePeriods } from './grace-periods.ts'

let directory = ''
const note = () => join(directory, 'note')
const setting = () => join(directory, 'rcu_expedited')
const value = () => readFileSync(setting(), 'utf8').trim()

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'berth-grace-'))
  writeFileSync(setting(), '0\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

it('an engine hastens grace periods while it runs, and sets them back when it ends', () => {
  expect(hastenGracePeriods(note(), setting())).toBe(true)
  expect(value()).toBe('1')
  leaveGracePeriods(note(), setting())
  expect(value()).toBe('0')
})

it('an engine sets back what one before it has left after a crash', () => {
  hastenGracePeriods(note(), setting())
  expect(hastenGracePeriods(note(), setting())).toBe(true)
  leaveGracePeriods(note(), setting())
  expect(value()).toBe('0')
})

it('grace periods that the operator has hastened stay so', () => {
  writeFileSync(setting(), '1\n')
  expect(hastenGracePeriods(note(), setting())).toBe(true)
  leaveGracePeriods(note(), setting())
  expect(value()).toBe('1')
})

it('a kernel without the setting is left alone', () => {
  rmSync(setting())
  expect(hastenGracePeriods(note(), join(directory, 'none', 'rcu_expedited'))).toBe(false)
  leaveGracePeriods(note(), setting())
})
