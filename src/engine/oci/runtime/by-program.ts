// Calls that every OCI program takes in the same way.

import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunResult } from '../../../lib/process.ts'
import { removeTree } from '../kernel/mounts.ts'
import { run } from '../kernel/programs.ts'
import type { Driver, Started } from './driver.ts'

type Program = Pick<Driver, 'binary' | 'launcher' | 'globalArgs' | 'deadlineMs'>

export async function startByProgram(
  { launcher, globalArgs, deadlineMs }: Program,
  container: string,
  signal: AbortSignal,
): Promise<Started> {
  const limits = { timeoutMs: deadlineMs, signal }
  const said = await run(launcher, [...globalArgs, 'start', container], limits)
  if (said.exitCode === 0 || /already running|in state running/.test(said.stderr)) return { kind: 'started' }
  return { kind: 'failed', reason: said.timedOut ? 'the runtime hung' : said.stderr }
}

export function terminateByProgram(
  { binary, globalArgs, deadlineMs }: Program,
  container: string,
  signal: AbortSignal,
): Promise<RunResult> {
  return run(binary, [...globalArgs, 'kill', container, 'TERM'], { timeoutMs: deadlineMs, signal })
}

/**
 * Removes the state that any program has of an ended container. Not with its `delete`, which starts a process, and in
 * runsc of 2024 waits seconds for a gofer that has already ended. A run's own class need not be known for it.
 */
export async function forgetContainer(rootOf: (name: string) => string, container: string): Promise<void> {
  const files = [
    join(rootOf('runsc'), `runsc-${container}.sock`),
    join(rootOf('runsc'), `${container}_sandbox:${container}.state`),
    join(rootOf('runsc'), `${container}_sandbox:${container}.lock`),
  ]
  await Promise.all(files.map((path) => rm(path, { force: true })))
  await removeTree(join(rootOf('runc'), container))
}

/** Returns the names of the containers of which any program has state. */
export async function listContainers(rootOf: (name: string) => string): Promise<string[]> {
  const lists = await Promise.all(
    ['runc', 'runsc'].map((name) => readdir(rootOf(name)).catch((): string[] => [])),
  )
  return [...new Set(lists.flat().map((name) => name.replace(/^runsc-|_sandbox:.*$|\.sock$/g, '')))]
}
