// Commands of the AI SDK's sandbox that run on: with standard input over a WebSocket, without it as background processes.

import type { Experimental_SandboxProcess, Experimental_SandboxSession } from 'ai'
import type { Exit } from '../command.ts'
import { isBerthError } from '../errors.ts'
import type { Terminal } from '../terminal.ts'
import type { Unit } from '../unit.ts'
import { pipesOf } from './pipes.ts'

type Spawn = Experimental_SandboxSession['spawn']
type SpawnOptions = Parameters<Spawn>[0]

/** The longest that the service runs a command for. */
export const LONGEST_RUN_MS = 3_600_000
/** What a process that was killed ends with, by the habit of shells. */
const KILLED = 137
/** A message of the WebSocket carries less than this. */
const PIECE_BYTES = 65_536

export function spawnInUnit(unit: Unit, at: (path: string) => string): Spawn {
  const spawn = async (options: SpawnOptions) => {
    const { workingDirectory = '.', env, abortSignal } = options
    const asked = { cwd: at(workingDirectory), env, signal: abortSignal }
    if (options.stdin !== true) return endedBy(abortSignal, await startProcess(unit, options.command, asked))
    const terminal = await unit.terminal({ command: options.command, tty: false, ...asked })
    return { ...endedBy(abortSignal, ofTerminal(terminal)), stdin: inputOf(terminal) }
  }
  return spawn as Spawn
}

async function startProcess(
  unit: Unit,
  command: string,
  asked: { cwd: string; env: Record<string, string> | undefined; signal: AbortSignal | undefined },
): Promise<Experimental_SandboxProcess> {
  const process = await unit.processes.start(command, asked)
  const { stdout, stderr, ended } = pipesOf(process.follow())
  const { pid } = process.info
  return {
    ...(pid === null ? {} : { pid }),
    stdout,
    stderr,
    wait: async () => {
      await ended
      return { exitCode: process.exitCode ?? KILLED }
    },
    kill: async () => {
      await process.signal('KILL').catch((error: unknown) => {
        // It has ended already.
        if (!isBerthError(error, 'invalid_state') && !isBerthError(error, 'not_found')) throw error
      })
    },
  }
}

function ofTerminal(terminal: Terminal): Experimental_SandboxProcess {
  const { stdout, stderr, ended } = pipesOf(terminal.output)
  return {
    stdout,
    stderr,
    wait: async () => {
      await ended
      const { exitCode }: Exit = await terminal.wait()
      return { exitCode }
    },
    kill: async () => terminal.signal('KILL'),
  }
}

function inputOf(terminal: Terminal): WritableStream<Uint8Array> {
  return new WritableStream({
    write: (chunk) => {
      for (let from = 0; from < chunk.length; from += PIECE_BYTES)
        terminal.write(chunk.subarray(from, from + PIECE_BYTES))
    },
    close: () => terminal.end(),
    abort: () => terminal.end(),
  })
}

/** Aborting the signal kills it, and a caller that waits gets the signal's reason. */
function endedBy(
  signal: AbortSignal | undefined,
  process: Experimental_SandboxProcess,
): Experimental_SandboxProcess {
  if (!signal) return process
  const stop = () => void Promise.resolve(process.kill()).catch(() => {})
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  return {
    ...process,
    wait: async () => {
      try {
        const exit = await process.wait()
        signal.throwIfAborted()
        return exit
      } finally {
        signal.removeEventListener('abort', stop)
      }
    },
  }
}
