import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { raiseSharedCounters, readSharedCounters } from './shared-counters.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth-counters-'))
})
afterEach(() => rmSync(root, { recursive: true }))

const write = (path: string, value: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), value)
}
const valueOf = (path: string) => Number(readFileSync(join(root, path), 'utf8'))
const low = () => readSharedCounters(root).flatMap(({ name, isLow }) => (isLow ? [name] : []))

it('raiseSharedCounters raises kernel defaults that are too low and does nothing the second time', () => {
  write('fs/inotify/max_user_instances', '128\n')
  write('fs/aio-max-nr', '65536\n')
  write('kernel/pty/max', '4096\n')
  expect(low()).toEqual(['fs.inotify.max_user_instances', 'fs.aio-max-nr', 'kernel.pty.max'])
  raiseSharedCounters(root)
  expect(valueOf('fs/inotify/max_user_instances')).toBeGreaterThan(1_000_000)
  expect(valueOf('fs/aio-max-nr')).toBeGreaterThan(1_000_000)
  expect(valueOf('kernel/pty/max')).toBeGreaterThan(100_000)
  expect(raiseSharedCounters(root)).toEqual([])
  expect(low()).toEqual([])
})

it('raiseSharedCounters keeps a value that the operator has set higher or unlimited', () => {
  write('fs/inotify/max_user_watches', '2147483647\n')
  write('fs/pipe-user-pages-soft', '0\n')
  raiseSharedCounters(root)
  expect(valueOf('fs/inotify/max_user_watches')).toBe(2_147_483_647)
  expect(valueOf('fs/pipe-user-pages-soft')).toBe(0)
  expect(low()).toEqual([])
})

it('raiseSharedCounters ignores counters that the kernel does not have', () => {
  expect(raiseSharedCounters(root)).toEqual([])
  expect(readSharedCounters(root)).toEqual([])
})
