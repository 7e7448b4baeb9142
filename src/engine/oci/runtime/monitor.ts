// conmon: one small process per run, which is the parent of the sandbox, writes its log and leaves its exit code in a
// file. It outlives the engine, so that the next engine can adopt the run.

import { constants, readFileSync } from 'node:fs'
import { open, readdir, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { boundedText } from '../../../lib/bounded-text.ts'
import { killProcessGroup, SAFE_PATH } from '../../../lib/process.ts'
import type { RunPaths } from '../paths.ts'
import type { Driver, Restored } from './driver.ts'
import type { KeptMonitor } from './kept-monitor.ts'
import type { Charge } from '../kernel/team-groups.ts'
import { startProgram } from '../kernel/programs.ts'
import { closeFd, createPipe } from '../kernel/syscalls.ts'

export type Monitor = { pid: number; startTime: string }

/** `charge`: whose expense conmon and the runtime run at. `stdin`: a FIFO that the process gets; null: nothing to read. */
export type MonitorPlace = {
  monitor: KeptMonitor
  logFile: string
  exitDir: string
  charge: Charge
  stdin: string | null
}

/** conmon gives its runtime nothing to read. */
const WITH_STDIN = 'exec "$@" <"$0"'

export type MonitorStart = { kind: 'started'; monitor: Monitor } | { kind: 'failed'; reason: string }

/** Signal n is bit n - 1. */
const SIGKILL_BIT = 1n << 8n
const END_ROUNDS = 100
const MAX_REPORT_BYTES = 64 * 1024
/** If a restore hangs, a cold start must follow within seconds. */
const RESTORE_DEADLINE_MS = 10_000

/**
 * Starts conmon, which has the runtime create or restore the container. A hung runtime is an error after a deadline,
 * and at once when the start is given up; neither it nor conmon is left behind. Repeating a successful start has no
 * effect.
 */
export async function startMonitor(
  driver: Driver,
  run: RunPaths,
  place: MonitorPlace,
  signal: AbortSignal,
  restored: Restored | null = null,
): Promise<MonitorStart> {
  const running = findMonitor(run)
  if (running) return { kind: 'started', monitor: running }
  const report = createPipe()
  const deadlineMs = restored ? Math.min(driver.deadlineMs, RESTORE_DEADLINE_MS) : driver.deadlineMs
  const [conmon, ...before] = place.monitor.command
  const [command, args] = place.charge(conmon, [...before, ...conmonArgs(driver, run, place, restored)])
  const launcher = startProgram(command, args, {
    // conmon writes the result of the creation to the descriptor that this variable names.
    env: { ...place.monitor.env, PATH: restored?.searchPath ?? SAFE_PATH, _OCI_SYNCPIPE: '3' },
    stdio: [null, null, null, report.writeEnd],
    // It creates a file named `oom` in its working directory.
    cwd: run.dir,
  })
  closeFd(report.writeEnd)
  // It ends once conmon has begun, which is no child of ours then.
  let notStarted: string | null = null
  launcher.ended.catch((error: unknown) => (notStarted = `conmon was not started: ${String(error)}`))
  const parsed = parseReport(await readReport(report.readEnd, deadlineMs, signal))
  const monitor = findMonitor(run)
  if (parsed.kind === 'created' && monitor) return { kind: 'started', monitor }
  launcher.kill()
  await endMonitor(run)
  if (notStarted === null && parsed.kind === 'failed') return parsed
  return { kind: 'failed', reason: notStarted ?? 'conmon ended at once' }
}

/** Whether this process of the record is alive: a pid alone may have been reused. */
export function isMonitorAlive(monitor: Monitor): boolean {
  return startTimeOf(monitor.pid) === monitor.startTime
}

/**
 * Whether the sandbox, or the process that serves its files, has a pending SIGKILL: while frozen it stays, and it
 * dies as soon as it is thawed. Both are conmon's children.
 */
export function hasPendingKill(monitor: Monitor): boolean {
  return childrenOf(monitor).some((child) => {
    const pending = tryRead(`/proc/${child}/status`).matchAll(/^(?:SigPnd|ShdPnd):\s+([0-9a-f]+)$/gm)
    return [...pending].some(([, mask]) => (BigInt(`0x${mask ?? '0'}`) & SIGKILL_BIT) !== 0n)
  })
}

/** The processes of a machine's run: the sandbox and its file server, or its first process. */
export function childrenOf({ pid }: Monitor): number[] {
  return tryRead(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

/**
 * Kills conmon and a runtime that still works for it, which are one process group. Uses the pid that conmon left, if
 * that is still its own: for an interrupted start it is recorded nowhere else.
 */
export async function endMonitor(run: RunPaths): Promise<void> {
  const pid = readMonitorPid(run)
  if (pid === null) return
  const command = tryRead(`/proc/${pid}/cmdline`)
  if (command !== '' && !command.split('\0').includes(run.container)) return
  killProcessGroup(pid)
  // Until it is gone it may still write an exit.
  for (let round = 0; round < END_ROUNDS && startTimeOf(pid) !== null; round += 1) await delay(1)
}

/** Deletes the exit file of a run, also under the name it has while conmon writes it. */
export async function forgetExit({ exit }: RunPaths): Promise<void> {
  const [directory, container] = [dirname(exit), basename(exit)]
  const names = (await readdir(directory)).filter(
    (name) => name === container || name.startsWith(`${container}.`),
  )
  await Promise.all(names.map((name) => rm(join(directory, name), { force: true })))
}

function findMonitor(run: RunPaths): Monitor | null {
  const pid = readMonitorPid(run)
  const startTime = pid === null ? null : startTimeOf(pid)
  return pid === null || startTime === null ? null : { pid, startTime }
}

function readMonitorPid(run: RunPaths): number | null {
  const text = tryRead(run.monitorPid).trim()
  return /^[1-9]\d*$/.test(text) ? Number(text) : null
}

/** Makes conmon reopen its log file after it was renamed. Has a timeout, in case conmon is gone. */
export async function reopenLog(run: RunPaths): Promise<void> {
  const control = await open(run.control, constants.O_WRONLY | constants.O_NONBLOCK)
  try {
    await control.write('2 0 0\n')
  } finally {
    await control.close()
  }
}

function conmonArgs(
  driver: Driver,
  run: RunPaths,
  { logFile, exitDir, stdin }: MonitorPlace,
  restored: Restored | null,
): string[] {
  const through = stdin === null ? [] : ['-c', WITH_STDIN, stdin, driver.launcher]
  const args = [
    ['--api-version', '1'],
    ['--cid', run.container],
    ['--cuuid', run.container],
    ['--name', run.container],
    ['--runtime', stdin === null ? driver.launcher : '/bin/sh'],
    ['--bundle', run.dir],
    ['--container-pidfile', run.pid],
    ['--conmon-pidfile', run.monitorPid],
    ['--log-path', `k8s-file:${logFile}`],
    ['--log-size-max', String(driver.logFileBytes)],
    ['--log-level', 'error'],
    ['--exit-dir', exitDir],
    ['--no-sync-log', '--full-attach'],
    ...[...through, ...driver.globalArgs].map((arg) => ['--runtime-arg', arg]),
    ...(restored ? [['--restore', restored.directory]] : []),
  ]
  return args.flat()
}

function readReport(fd: number, timeoutMs: number, signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const socket = new Socket({ fd, readable: true, writable: false })
    const report = boundedText(MAX_REPORT_BYTES)
    const finish = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', finish)
      socket.destroy()
      resolve(report.text())
    }
    const timer = setTimeout(finish, timeoutMs)
    signal.addEventListener('abort', finish, { once: true })
    if (signal.aborted) finish()
    socket.on('data', (chunk: Buffer) => {
      report.add(chunk)
      if (chunk.includes('\n') || report.text().length === MAX_REPORT_BYTES) finish()
    })
    socket.on('end', finish)
    socket.on('error', finish)
  })
}

/** conmon reports `{ data: pid }`, or a negative number and the runtime's message. */
function parseReport(text: string): MonitorStart | { kind: 'created' } {
  if (text === '') return { kind: 'failed', reason: 'conmon said nothing within its time' }
  try {
    const report = JSON.parse(text) as { data?: number; pid?: number; message?: string }
    if ((report.data ?? report.pid ?? -1) > 0) return { kind: 'created' }
    return { kind: 'failed', reason: report.message ?? 'the runtime gave no reason' }
  } catch {
    return { kind: 'failed', reason: `conmon said: ${text.slice(0, 500)}` }
  }
}

/** Field 22 of /proc/PID/stat; the fields before may contain spaces, but only within parentheses. */
function startTimeOf(pid: number): string | null {
  const stat = tryRead(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' ? null : (fields[19] ?? null)
}

function tryRead(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
