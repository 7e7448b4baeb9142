// A keeper holds the read ends of a process's pipes open while no engine reads them: a process of the host that has
// them as descriptors and never uses them (hold.c). Its program lies in the data directory, since it outlives the image of an
// engine in a container. So a process runs on when the engine ends, blocks when its pipe is full,
// and the next engine continues reading. The keeper's name identifies its process; it ends with the process.

import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { waitForChild } from '../kernel/children.ts'
import { allPids, commandOf, isOfHost } from '../kernel/host-processes.ts'
import { spawnProgram } from '../kernel/spawning.ts'
import { HOLD } from '../machine-programs/hold.ts'
import type { Paths } from '../paths.ts'

export const keptPipes = ['stdout', 'stderr', 'report'] as const
type KeptPipe = (typeof keptPipes)[number]
/** Descriptors in this process. */
export type Pipes = Record<KeptPipe, number>

/** `run`: the directory of its run. `holds`: which pipes. */
export type Keeper = { pid: number; run: string; process: string; holds: Holds }
type Holds = keyof typeof names
type Kept = Pick<Keeper, 'run' | 'process'>

const names = { outputs: 'berth-keeper', input: 'berth-input-keeper' } as const

/** `of.run`: the directory of its run. */
export function startKeeper(paths: Paths, of: Kept, { stdout, stderr, report }: Pipes): Keeper {
  return keep(paths, { holds: 'outputs', ...of }, [stdout, stderr, report])
}

/** Of the writing end of an input that stays open: it ends with this keeper. */
export function startInputKeeper(paths: Paths, of: Kept, writeEnd: number): Keeper {
  return keep(paths, { holds: 'input', ...of }, [writeEnd])
}

function keep({ helper }: Paths, keeper: Omit<Keeper, 'pid'>, held: number[]): Keeper {
  const argv0 = nameOf(keeper)
  const pid = spawnProgram(join(helper, HOLD), [], { argv0, stdio: held, env: {}, cwd: '/' })
  void waitForChild(pid)
  return { pid, ...keeper }
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
