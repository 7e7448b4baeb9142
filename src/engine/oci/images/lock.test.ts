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

it('an exclusive lock excludes all others, and a shared lock excludes only exclusive ones', async () => {
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

it('release frees the lock at once, even if a child process has inherited its file descriptor', async () => {
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
