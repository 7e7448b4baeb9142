// Runs a command in a running machine. Its output goes through real pipes of ours straight to the caller,
// whose slowness holds the command back; at its deadline all of it dies, daemonised children included.

import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SAFE_PATH } from '../../lib/process.ts'
import type { ExecExit, ExecRequest, MachineRef } from '../engine.ts'
import { execProcess, type OciConfig, type Process } from './bundle.ts'
import { createChild, killAll, removeChild } from './cgroups.ts'
import { waitForChild } from './children.ts'
import { killInsideGvisor } from './exec-kill.ts'
import { drain, feed, type OnOutput, type Pump, pump, readAll } from './exec-pipes.ts'
import { getRunning, getRuntime, type Host, type Machine } from './host.ts'
import type { RunPaths } from './paths.ts'
import { execArgs, type Runtime } from './runtime.ts'
import { closeFd, createPipe } from './syscalls.ts'

const TIMED_OUT_CODE = 124
const NOT_FOUND = 127
const NOT_EXECUTABLE = 126

export async function execInMachine(
  host: Host,
  ref: MachineRef,
  request: ExecRequest,
  onOutput: OnOutput,
  signal?: AbortSignal,
  options: { asRoot?: boolean } = {},
): Promise<ExecExit> {
  const machine = getRunning(host, ref)
  const runtime = getRuntime(host, machine.record.spec.isolation)
  const paths = host.paths.run(ref.id, ref.generation)
  const name = `exec-${process.pid}-${(machine.execs += 1)}`
  const files = { processFile: join(paths.execs, `${name}.json`), pidFile: join(paths.execs, `${name}.pid`) }
  const mainProcess = await loadProcess(machine, paths)
  const marker = `BERTH_EXEC=${name}`
  const described = execProcess(mainProcess, request.argv, {
    ...(runtime.class === 'gvisor' ? { env: [marker] } : {}),
    ...options,
  })
  await writeFile(files.processFile, JSON.stringify(described), { mode: 0o600 })

  const child = runtime.execDetaches ? childGroup(host, paths, name) : null
  const kill = async () => {
    if (child) await killAll(host.cgroups, paths.container, name)
    else await killInsideGvisor(runtime, paths.container, marker, mainProcess, paths.execs)
  }
  try {
    return await runToEnd(host, { runtime, paths, files, child, request, onOutput, kill, signal })
  } finally {
    await Promise.all([rm(files.processFile, { force: true }), rm(files.pidFile, { force: true })])
    if (child) removeChild(host.cgroups, paths.container, name)
  }
}

type Run = {
  runtime: Runtime
  paths: RunPaths
  files: { processFile: string; pidFile: string }
  child: string | null
  request: ExecRequest
  onOutput: OnOutput
  kill: () => Promise<void>
  signal: AbortSignal | undefined
}

async function runToEnd(host: Host, run: Run): Promise<ExecExit> {
  const { request } = run
  let timedOut = false
  const aborted = run.signal ?? new AbortController().signal
  const timer = setTimeout(() => {
    timedOut = true
    void run.kill().catch((error: unknown) => host.log.warn({ error }, 'a timed out command was not killed'))
  }, request.timeoutMs)
  const onAbort = () => {
    void run.kill().catch((error: unknown) => host.log.warn({ error }, 'an abandoned command was not killed'))
  }
  aborted.addEventListener('abort', onAbort, { once: true })
  try {
    const { exitCode, failedToStart } = await spawnAndPump(run, () => aborted.aborted || timedOut)
    if (timedOut) return { exitCode: TIMED_OUT_CODE, timedOut: true }
    if (failedToStart !== null) return await reportFailedStart(run, failedToStart)
    return { exitCode, timedOut: false }
  } finally {
    clearTimeout(timer)
    aborted.removeEventListener('abort', onAbort)
  }
}

async function spawnAndPump(
  run: Run,
  isCancelled: () => boolean,
): Promise<{ exitCode: number; failedToStart: string | null }> {
  const [stdout, stderr] = [createPipe(), createPipe()]
  const stdin = run.request.stdin === null ? null : createPipe()
  const launcher = spawn(
    run.runtime.binary,
    execArgs(run.runtime, run.paths.container, run.files, run.child),
    {
      env: { PATH: SAFE_PATH },
      stdio: [stdin?.readEnd ?? 'ignore', stdout.writeEnd, stderr.writeEnd],
      detached: true,
    },
  )
  for (const fd of [stdout.writeEnd, stderr.writeEnd, ...(stdin ? [stdin.readEnd] : [])]) closeFd(fd)
  if (stdin && run.request.stdin) feed(stdin.writeEnd, run.request.stdin)

  const launched = new Promise<number>((resolve, reject) => {
    launcher.once('error', reject)
    launcher.once('exit', (code) => resolve(code ?? NOT_EXECUTABLE))
  })
  if (run.runtime.execDetaches) {
    // Readers start only now: until here, what is in the pipe may be the runtime's own complaint.
    const launchCode = await launched
    const pid = readPid(run.files.pidFile)
    if (launchCode !== 0 || pid === null) {
      const complaint = await readAll(stderr.readEnd)
      closeFd(stdout.readEnd)
      return { exitCode: launchCode, failedToStart: complaint }
    }
    if (isCancelled()) await run.kill()
    const pumps = [pump('stdout', stdout.readEnd, run.onOutput), pump('stderr', stderr.readEnd, run.onOutput)]
    killOnFailure(run, pumps)
    const code = await waitForChild(pid)
    await drain(pumps)
    return { exitCode: code ?? TIMED_OUT_CODE, failedToStart: null }
  }
  let complaint = ''
  const started = () => existsSync(run.files.pidFile)
  const pumps = [
    pump('stdout', stdout.readEnd, run.onOutput),
    pump('stderr', stderr.readEnd, async (output) => {
      // Before the command runs, only the runtime itself can have said something.
      if (complaint.length < 4096 && !started()) complaint += output.data.toString('utf8')
      else await run.onOutput(output)
    }),
  ]
  killOnFailure(run, pumps)
  const exitCode = await launched
  await drain(pumps)
  return { exitCode, failedToStart: started() ? null : complaint }
}

/** A command that cannot be executed ends as it would in a shell: 127 or 126, and why on stderr. */
async function reportFailedStart(run: Run, complaint: string): Promise<ExecExit> {
  const command = run.request.argv[0] ?? ''
  const denied = /permission denied|exec format error|is a directory/i.test(complaint)
  const why = denied ? 'cannot be executed' : 'command not found'
  await run.onOutput({ stream: 'stderr', data: Buffer.from(`${command.slice(0, 200)}: ${why}\n`) })
  return { exitCode: denied ? NOT_EXECUTABLE : NOT_FOUND, timedOut: false }
}

/** Nobody takes the output any more, so the command is not wanted either; `drain` tells the caller why. */
function killOnFailure(run: Run, pumps: Pump[]): void {
  for (const one of pumps) one.ended.catch(() => run.kill())
}

function readPid(path: string): number | null {
  try {
    return Number(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}

/** A group of the exec's own below the machine's, so that exactly its processes can be killed. */
function childGroup(host: Host, paths: RunPaths, name: string): string {
  createChild(host.cgroups, paths.container, name)
  return host.cgroups.version === 1 ? `freezer:${name}` : name
}

async function loadProcess(machine: Machine, paths: RunPaths): Promise<Process> {
  machine.process ??= (JSON.parse(await readFile(paths.config, 'utf8')) as OciConfig).process
  return machine.process
}
