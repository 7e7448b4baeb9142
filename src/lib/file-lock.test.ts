import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockFile } from './file-lock.ts'

let directory = ''
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), 'berth-lock-'))))
afterAll(async () => await rm(directory, { recursive: true }))

test('a file lock has one owner at a time, whose pid others are told, until the file is closed', async () => {
  const path = join(directory, 'closed')
  const first = await lockFile(path)
  if (!('file' in first)) throw new Error('nobody else has it')
  expect(await lockFile(path)).toEqual({ owner: `${process.pid}` })
  await first.file.close()
  const second = await lockFile(path)
  if (!('file' in second)) throw new Error('it was let go')
  await second.file.close()
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
  if (!('file' in locked)) throw new Error(`process ${locked.owner} still has it`)
  await locked.file.close()
})
