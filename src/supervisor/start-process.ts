// Starts one of Berth's processes: in its own session, so that Ctrl-C only reaches the supervisor; it ends with the
// supervisor, and is killed if it hangs.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { SECOND } from '../lib/clock.ts'
import {
  type ProcessInput,
  type ProcessName,
  type ProcessReport,
  SILENT_FOR_MS,
} from '../processes/channel.ts'
import type { Running } from './restart-policy.ts'
import { processCommand, processEnvironment } from './process-command.ts'
import { parseReport } from './process-reports.ts'
import { createWatchdog } from './watchdog.ts'

/** How long a process may be silent before it is ready. */
const SILENT_START_MS = 120 * SECOND
const WARM_UP_TIMEOUT_MS = 30 * SECOND
const STOP_TIMEOUT_MS = 15 * SECOND

export type ServiceProcess = Running & { result: unknown }

/** Resolves once the process has reported ready; throws its sentence if it fails before. */
export async function startProcess(options: {
  name: ProcessName
  input: ProcessInput
  /** A file descriptor for its standard error. */
  logFile: number
  onProgress: (text: string) => void
  onNeeds: (needed: 'egress') => void
  onLeads: () => void
  signal: AbortSignal
}): Promise<ServiceProcess> {
  const { name, input, logFile, onProgress, onNeeds, onLeads, signal } = options
  signal.throwIfAborted()
  const child = spawnRole(name, input, logFile)
  const ready = Promise.withResolvers<unknown>()
  const kill = () => child.kill('SIGKILL')
  const watchdog = createWatchdog(SILENT_START_MS, kill)
  signal.addEventListener('abort', kill, { once: true })

  readReports(child, (report) => {
    if (report.kind === 'progress') onProgress(report.text)
    if (report.kind === 'needs') onNeeds(report.process)
    if (report.kind === 'leads') onLeads()
    if (report.kind === 'failed') ready.reject(new Error(report.message))
    if (report.kind === 'ready') {
      watchdog.limit(SILENT_FOR_MS)
      ready.resolve(report.result)
    }
    watchdog.reset()
  })
  const ended = endOf(child).finally(() => watchdog.limit(null))
  void ended.then((how) => ready.reject(new Error(`The ${name} ${how} before it was ready.`)))

  try {
    return { result: await ready.promise, ended, stop: () => stopChild(child, ended) }
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

/** Runs a process that only loads its program, so that its compiled code is cached for the real start. */
export async function warmUpProcess(name: ProcessName, input: ProcessInput, logFile: number): Promise<void> {
  const child = spawnRole(name, { ...input, warmUp: true }, logFile)
  const timer = setTimeout(() => child.kill('SIGKILL'), WARM_UP_TIMEOUT_MS)
  await endOf(child)
  clearTimeout(timer)
}

function spawnRole(name: ProcessName, input: ProcessInput, logFile: number): ChildProcess {
  const [command, args] = processCommand(name, input)
  const child = spawn(command, args, {
    detached: true,
    cwd: '/',
    env: processEnvironment(name, input),
    stdio: ['pipe', 'pipe', logFile],
  })
  // It may end before it has read its settings; its exit reports that.
  child.stdin?.on('error', () => {})
  child.stdin?.end(`${JSON.stringify(input)}\n`)
  return child
}

function readReports(child: ChildProcess, onReport: (report: ProcessReport) => void): void {
  if (!child.stdout) return
  createInterface({ input: child.stdout }).on('line', (line) => {
    const report = parseReport(line)
    if (report) onReport(report)
  })
}

/** Returns how the process ended, once its last report has been read. */
async function endOf(child: ChildProcess): Promise<string> {
  const closed = once(child, 'close')
  const [code, signal] = await once(child, 'exit')
  await Promise.race([closed, delay(SECOND)])
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`
}

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const inTime = await Promise.race([ended, delay(STOP_TIMEOUT_MS, null, { ref: false })])
  if (inTime !== null) return
  child.kill('SIGKILL')
  await ended
}
