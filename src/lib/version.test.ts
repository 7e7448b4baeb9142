import { expect, it } from 'vitest'
import { refuseVersion, VERSION } from './version.ts'

it.each([
  ['1.4.0', '1.4.7', true],
  ['1.3.9', '1.4.0', true],
  ['1.5.0-rc.1', '1.4.0', true],
  ['1.2.0', '1.4.0', false],
  ['1.6.0', '1.4.0', false],
  ['2.4.0', '1.4.0', false],
  ['none', '1.4.0', false],
])('a Berth %s and a server %s work together only one minor version apart', (other, own, isFine) => {
  expect(refuseVersion(other, own) === null).toBe(isFine)
})

it('a Berth works with its own version, and says both of one that is too far away', () => {
  expect(refuseVersion(VERSION)).toBe(null)
  expect(refuseVersion('1.2.0', '1.4.0')).toBe(
    'it runs Berth 1.2.0 and the server 1.4.0, which work together only one minor version apart; install the same there',
  )
})
