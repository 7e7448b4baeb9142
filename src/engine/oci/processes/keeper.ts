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

/** `run`: the directory of its run. */
export type Keeper = { pid: number; run: string; process: string }

const NAME = 'berth-keeper'

export function startKeeper(run: string, process: string, { stdout, stderr, report }: Pipes): Keeper {
  const pid = spawnProgram('/bin/sleep', ['infinity'], {
    argv0: nameOf(run, process),
    stdio: [stdout, stderr, report],
    env: {},
    cwd: '/',
  })
  void waitForChild(pid)
  return { pid, run, process }
}

/** Idempotent: a pid that belongs to another process by now is left alone. */
export function endKeeper({ pid, run, process: id }: Keeper): void {
  if (commandOf(pid)[0] !== nameOf(run, id)) return
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
    const [, run, id] = /^berth-keeper (\S+) (\S+)$/.exec(commandOf(pid)[0] ?? '') ?? []
    if (run === undefined || id === undefined || !run.startsWith(`${runs}/`) || !isOfHost(pid)) return []
    return [{ pid, run, process: id }]
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

function nameOf(run: string, id: string): string {
  return `${NAME} ${run} ${id}`
}
