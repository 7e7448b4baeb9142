import { existsSync } from 'node:fs'
import { afterEach, expect, it, vi } from 'vitest'
import { BESIDE_VARIABLE, filesBeside, filesLeftToBeside } from './support/beside.ts'

afterEach(() => void vi.unstubAllEnvs())

it('every file that runs beside the host tier exists', () => {
  expect(filesBeside.filter((file) => !existsSync(new URL(`../${file}`, import.meta.url)))).toEqual([])
})

it('the fast tier leaves files to run beside the host tier only where all tiers run', () => {
  vi.stubEnv(BESIDE_VARIABLE, 'no')
  expect(filesLeftToBeside()).toEqual([])
  vi.stubEnv(BESIDE_VARIABLE, 'yes')
  expect(filesLeftToBeside()).toEqual(filesBeside)
})
