// Runs programs of the host from the engine, without a copy of its page tables (spawning.ts): everything that a caller may
// wait for is run by these, and not by Node's `spawn`.

import { constants } from 'node:os'
import { Socket } from 'node:net'
import { createRunner, type Ended, killProcessGroup } from '../../../lib/process.ts'
import { openReader } from './pipes.ts'
import { followChild } from './children.ts'
import { type Spawned, spawnProgram } from './spawning.ts'
import { closeFd, createPipe } from './syscalls.ts'

export type Program = {
  /** Rejects if it could not be started. */
  ended: Promise<Ended>
  /** Kills its process group, of which it is the first; not once it is reaped, since its number may then be another's. */
  kill: () => void
}

const signalNames = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name as NodeJS.Signals]),
)

/** It is not reaped before `until`: what it has begun in its group can be killed as long. */
export function startProgram(
  command: string,
  args: string[],
  spawned: Spawned,
  until?: Promise<unknown>,
): Program {
  let pid: number
  try {
    pid = spawnProgram(command, args, spawned)
  } catch (error) {
    return { ended: Promise.reject(error), kill: () => {} }
  }
  const { ended, isReaped } = followChild(pid, until)
  return {
    ended: ended.then((end) => {
      if (end === null) return { exitCode: null, signal: null }
      if (end.signal === 0) return { exitCode: end.code, signal: null }
      return { exitCode: null, signal: signalNames.get(end.signal) ?? null }
    }),
    kill: () => {
      if (!isReaped()) killProcessGroup(pid)
    },
  }
}

/** As those of lib/process.ts. */
export const { run, runOrThrow } = createRunner((command, args, { hasStdin, env, cwd }) => {
  const [out, error, input] = createPipes(hasStdin ? 3 : 2)
  if (!out || !error) throw new Error('there are no pipes')
  const [stdout, stderr] = [openReader(out.readEnd), openReader(error.readEnd)]
  const closed = Promise.all([stdout, stderr].map(whenClosed))
  const stdio = [input?.readEnd ?? null, out.writeEnd, error.writeEnd]
  const program = startProgram(command, args, { env, stdio, ...(cwd === undefined ? {} : { cwd }) }, closed)
  for (const fd of stdio) if (fd !== null) closeFd(fd)
  const stdin = input ? new Socket({ fd: input.writeEnd, readable: false, writable: true }) : null
  return { ...program, stdin, stdout, stderr }
})

/** All or none. */
function createPipes(count: number): ReturnType<typeof createPipe>[] {
  const pipes: ReturnType<typeof createPipe>[] = []
  try {
    while (pipes.length < count) pipes.push(createPipe())
    return pipes
  } catch (error) {
    for (const fd of pipes.flatMap(({ readEnd, writeEnd }) => [readEnd, writeEnd])) closeFd(fd)
    throw error
  }
}

/** Of a pipe that is read. */
export function whenClosed(reader: Socket): Promise<void> {
  return new Promise((resolve) => reader.once('close', () => resolve()))
}
