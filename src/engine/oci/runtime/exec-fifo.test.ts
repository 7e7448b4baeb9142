import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeFifo } from '../kernel/syscalls.ts'
import { releaseFirstProcess } from './exec-fifo.ts'

let directory = ''
let first: ChildProcess
const fifo = () => join(directory, 'exec.fifo')
const release = (signal = new AbortController().signal, timeoutMs = 10_000) =>
  releaseFirstProcess(directory, join(directory, 'pid'), { timeoutMs, signal })

/** In place of the first process of a container. */
function begin(script: string): void {
  first = spawn('/bin/sh', ['-c', script, fifo()], { stdio: 'ignore' })
  writeFileSync(join(directory, 'pid'), `${first.pid}`)
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'berth-fifo-'))
  makeFifo(fifo())
})
afterEach(() => {
  first?.kill('SIGKILL')
  rmSync(directory, { recursive: true })
})

it('a first process that waits at its FIFO is released, and runc sees that it has started', async () => {
  begin('printf 0 >"$0"; exit 7')
  const ended = once(first, 'exit')
  expect(await release()).toBe('started')
  expect(existsSync(fifo())).toBe(false)
  expect((await ended)[0]).toBe(7)
  expect(await release()).toBe('not-there')
})

it('a first process that has ended before it was released is noticed', async () => {
  begin('exit 0')
  await once(first, 'exit')
  expect(await release()).toBe('dead')
  expect(existsSync(fifo())).toBe(true)
})

it('the wait for a first process that does not come ends at its deadline, and when the start is given up', async () => {
  begin('exec sleep 60')
  expect(await release(undefined, 20)).toBe('hung')
  expect(await release(AbortSignal.abort())).toBe('hung')
})

it('a link in place of the FIFO is not followed', async () => {
  begin('exec sleep 60')
  rmSync(fifo())
  spawnSync('ln', ['-s', '/etc/hostname', fifo()])
  expect(await release()).toBe('not-there')
})
