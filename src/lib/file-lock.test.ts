import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockFile, tryLock } from './file-lock.ts'

let directory = ''
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), 'berth-lock-'))))
afterAll(async () => await rm(directory, { recursive: true }))

test('a file lock has one owner at a time, whose pid others are told, until it is released', async () => {
  const path = join(directory, 'closed')
  const first = await lockFile(path)
  if ('owner' in first) throw new Error('nobody else has it')
  expect(await lockFile(path)).toEqual({ owner: `${process.pid}` })
  await first.release()
  const second = await lockFile(path)
  if ('owner' in second) throw new Error('it was let go')
  await second.release()
})

test('a file lock is released when its process is killed, and child processes do not inherit it', async () => {
  const path = join(directory, 'killed')
  const program = `
    import { spawn } from 'node:child_process'
    import { lockFile } from '${new URL('file-lock.ts', import.meta.url).href}'
    globalThis.held = await lockFile('${path}')
    const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })
    process.stdout.write(String(child.pid))
    setInterval(() => {}, 1000)`
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', program])
  const [left] = (await once(holder.stdout, 'data')) as [Buffer]
  expect(await lockFile(path)).toEqual({ owner: `${holder.pid}` })
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  const locked = await lockFile(path)
  process.kill(Number(left.toString()))
  if ('owner' in locked) throw new Error(`process ${locked.owner} still has it`)
  await locked.release()
})

async function descriptorOf(path: string): Promise<number> {
  for (const fd of await readdir('/proc/self/fd'))
    if ((await readlink(`/proc/self/fd/${fd}`).catch(() => '')) === path) return Number(fd)
  throw new Error(`${path} is not open`)
}

test('an exclusive lock excludes all others, and a shared lock excludes only exclusive ones', async () => {
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

test('release frees the lock at once, even if a child process has inherited its file descriptor', async () => {
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
