// Runs a program of the host to its end, as `run` of lib/process.ts does, but started by spawning.ts: for what the start of a
// machine waits for.

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { killProcessGroup, SAFE_PATH } from '../../../lib/process.ts'
import { waitForChild } from '../exec/children.ts'
import { openReader } from '../exec/pipes.ts'
import { spawnProgram } from '../kernel/spawning.ts'
import { closeFd, createPipe } from '../kernel/syscalls.ts'

/** `exitCode`: null if it could not be killed, or was ended by nobody knows what. */
export type Ran = { exitCode: number | null; stderr: string; timedOut: boolean }

const MAX_STDERR_BYTES = 64 * 1024
/** How long to wait after the kill. */
const GIVE_UP_AFTER_MS = 2000

/** What it prints on stdout is dropped. Rejects if it cannot be started. */
export async function runProgram(
  command: string,
  args: string[],
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<Ran> {
  const { readEnd, writeEnd } = createPipe()
  const reader = openReader(readEnd)
  let pid
  try {
    pid = spawnProgram(command, args, { env: { PATH: SAFE_PATH }, stdio: [null, null, writeEnd] })
  } catch (error) {
    reader.destroy()
    throw error
  } finally {
    closeFd(writeEnd)
  }
  const stderr = collect(reader)
  let hasEnded = false
  const ended = waitForChild(pid).finally(() => (hasEnded = true))
  const gaveUp = Promise.withResolvers<null>()
  let giveUp: NodeJS.Timeout | undefined
  const kill = () => {
    if (!hasEnded) killProcessGroup(pid)
    giveUp ??= setTimeout(() => gaveUp.resolve(null), GIVE_UP_AFTER_MS)
  }
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    kill()
  }, timeoutMs)
  signal.addEventListener('abort', kill, { once: true })
  if (signal.aborted) kill()
  try {
    const whole = Promise.all([ended, once(reader, 'close')]).then(([code]) => code)
    return { exitCode: await Promise.race([whole, gaveUp.promise]), stderr: stderr(), timedOut }
  } finally {
    clearTimeout(timer)
    clearTimeout(giveUp)
    signal.removeEventListener('abort', kill)
    reader.destroy()
  }
}

function collect(reader: Socket): () => string {
  const chunks: Buffer[] = []
  let bytes = 0
  reader.on('data', (chunk: Buffer) => {
    if (bytes < MAX_STDERR_BYTES) chunks.push(chunk)
    bytes += chunk.length
  })
  return () => Buffer.concat(chunks).toString('utf8')
}
