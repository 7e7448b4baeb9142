import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { tryLock } from './lock.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-lock-'))
})
afterEach(async () => await rm(directory, { recursive: true }))

async function descriptorOf(path: string): Promise<number> {
  for (const fd of await readdir('/proc/self/fd'))
    if ((await readlink(`/proc/self/fd/${fd}`).catch(() => '')) === path) return Number(fd)
  throw new Error(`${path} is not open`)
}

it('a lock that is held alone is held by nobody else, and shared ones by many', async () => {
  const path = join(directory, 'lock')
  const alone = await tryLock(path)
  expect(await tryLock(path)).toBeNull()
  expect(await tryLock(path, 'shared')).toBeNull()
  await alone?.release()
  const shared = [await tryLock(path, 'shared'), await tryLock(path, 'shared')]
  expect(shared).not.toContain(null)
  expect(await tryLock(path)).toBeNull()
  for (const lock of shared) await lock?.release()
})

it('a lock that is released is free at once, though a program that was started meanwhile has its file open', async () => {
  const path = join(directory, 'lock')
  const lock = await tryLock(path)
  const program = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore', await descriptorOf(path)] })
  await once(program, 'spawn')
  await lock?.release()
  const next = await tryLock(path)
  expect(next).not.toBeNull()
  await next?.release()
  program.stdin?.end()
  await once(program, 'exit')
})
