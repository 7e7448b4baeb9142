// A keeper holds the read ends of a process's pipes open while no engine reads them: a `sleep` of the host that has
// them as descriptors and never uses them. So a process runs on when the engine ends, blocks when its pipe is full,
// and the next engine continues reading. The keeper's name identifies its process; it ends with the process.

import { closeSync, constants, openSync, readSync } from 'node:fs'
import { waitForChild } from '../kernel/children.ts'
import { allPids, commandOf, isOfHost } from '../kernel/host-processes.ts'
import { spawnProgram } from '../kernel/spawning.ts'

export const keptPipes = ['stdout', 'stderr', 'report'] as const
type KeptPipe = (typeof keptPipes)[number]
/** Descriptors in this process. */
export type Pipes = Record<KeptPipe, number>

/** `run`: the directory of its run. `holds`: which pipes. */
export type Keeper = { pid: number; run: string; process: string; holds: Holds }
type Holds = keyof typeof names

const names = { outputs: 'berth-keeper', input: 'berth-input-keeper' } as const

export function startKeeper(run: string, process: string, { stdout, stderr, report }: Pipes): Keeper {
  return keep('outputs', run, process, [stdout, stderr, report])
}

/** Of the writing end of an input that stays open: it ends with this keeper. */
export function startInputKeeper(run: string, process: string, writeEnd: number): Keeper {
  return keep('input', run, process, [writeEnd])
}

function keep(holds: Holds, run: string, process: string, held: number[]): Keeper {
  const argv0 = nameOf({ holds, run, process })
  const pid = spawnProgram('/bin/sleep', ['infinity'], { argv0, stdio: held, env: {}, cwd: '/' })
  void waitForChild(pid)
  return { pid, run, process, holds }
}

/** Idempotent: a pid that belongs to another process by now is left alone. */
export function endKeeper(keeper: Keeper): void {
  const { pid } = keeper
  if (commandOf(pid)[0] !== nameOf(keeper)) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}

/**
 * Returns the keepers of an instance, by the directory of its runs. A machine's own process with such a name is
 * ignored.
 */
export function findKeepers(runs: string): Keeper[] {
  return allPids().flatMap((pid) => {
    const [, input, run, id] = /^berth-(input-)?keeper (\S+) (\S+)$/.exec(commandOf(pid)[0] ?? '') ?? []
    if (run === undefined || id === undefined || !run.startsWith(`${runs}/`) || !isOfHost(pid)) return []
    return [{ pid, run, process: id, holds: input === undefined ? 'outputs' : 'input' }]
  })
}

/** Opens the pipes again for reading. Throws if the keeper is gone. */
export function openKept({ pid }: Keeper): Pipes {
  const opened: number[] = []
  try {
    for (const [fd] of keptPipes.entries())
      opened.push(openSync(`/proc/${pid}/fd/${fd}`, constants.O_RDONLY | constants.O_NONBLOCK))
  } catch (error) {
    for (const fd of opened) closeSync(fd)
    throw error
  }
  const [stdout = -1, stderr = -1, report = -1] = opened
  return { stdout, stderr, report }
}

/** Opens the writing end of an input, whose writes do not wait. Throws if the keeper is gone, or nothing reads it any more. */
export function openInput(keeper: Keeper): number {
  if (commandOf(keeper.pid)[0] !== nameOf(keeper)) throw new Error('The keeper of the input is gone.')
  return openSync(`/proc/${keeper.pid}/fd/0`, constants.O_WRONLY | constants.O_NONBLOCK)
}

/** Returns what is in a pipe now, at most a small message. Null: it is empty, and has no writer any more. */
export function readNow(fd: number): Buffer | null {
  const buffer = Buffer.alloc(4096)
  try {
    const bytes = readSync(fd, buffer)
    return bytes === 0 ? null : buffer.subarray(0, bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return Buffer.alloc(0)
    throw error
  }
}

function nameOf({ holds, run, process }: Omit<Keeper, 'pid'>): string {
  return `${names[holds]} ${run} ${process}`
}
