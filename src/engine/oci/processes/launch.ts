// Starts the wrapper of a background process in its machine: over the sandbox's own socket, or by the runtime's exec.

import { closeSync, openSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { boundedText } from '../../../lib/bounded-text.ts'
import { SAFE_PATH } from '../../../lib/process.ts'
import type { ProcessRequest } from '../../process.ts'
import { EngineError } from '../../errors.ts'
import { commandGroup, filesOf, loadProcess, markerOf } from '../exec/command.ts'
import { controlOf, giveTo } from '../exec/direct.ts'
import { openReader } from '../kernel/pipes.ts'
import { startProgram, whenClosed } from '../kernel/programs.ts'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import { atExpenseOf } from '../kernel/team-groups.ts'
import { driverOf, type EngineContext, type Machine } from '../machine/context.ts'
import type { Account, Process } from '../runtime/bundle.ts'
import { type Control, executeOver } from '../runtime/control.ts'
import type { ExecFiles } from '../runtime/driver.ts'
import type { Readers } from './held-process.ts'
import type { Pipes } from './keeper.ts'
import { wrappedProcess } from './wrapper.ts'

const COMPLAINT_BYTES = 4096

export type Launch = {
  request: ProcessRequest & { account: Account | null }
  readers: Readers
  /** The process's ends of its pipes. */
  writeEnds: Pipes
  /** Null: it reads nothing. */
  stdin: number | null
}

/** Until it reports its pid. */
export async function launch(host: EngineContext, machine: Machine, given: Launch): Promise<void> {
  const { spec, generation } = machine.record
  const paths = host.paths.run(spec.id, generation)
  const driver = driverOf(host, machine)
  const described = wrappedProcess(await loadProcess(machine, paths), {
    ...given.request,
    marker: markerOf(given.request.id),
    isRelayed: driver.cutsWrites,
  })
  const control = await controlOf(driver, paths)
  const late = new AbortController()
  const tooLate = delay(driver.deadlineMs, undefined, { signal: late.signal }).catch(() => {})
  try {
    const complaint = control
      ? await launchOver(control, paths.container, described, given, [machine.ended, tooLate])
      : await launchByRuntime(host, machine, described, given, [machine.ended, tooLate])
    if (complaint !== null) throw notBegun(machine, generation, complaint)
  } finally {
    late.abort()
    control?.close()
  }
}

/** Whatever of these comes first, it is waited no longer. */
type Ends = Promise<unknown>[]

/** Returns null if it has begun, or else why not. It runs on without the connection. */
async function launchOver(
  control: Control,
  container: string,
  process: Process,
  { readers, writeEnds: { stdout, stderr, report }, stdin }: Launch,
  ends: Ends,
): Promise<string | null> {
  const input = stdin ?? openSync('/dev/null', 'r')
  try {
    giveTo(control, [...(stdin === null ? [] : [stdin]), stdout, stderr, report])
    const begun = executeOver(control, container, process, [input, stdout, stderr, report])
    const refused = begun.then(async (answer) => {
      if (answer.kind === 'refused') return answer.complaint
      return answer.kind === 'broken' ? '' : await new Promise<never>(() => {})
    })
    const complaint = await Promise.race([readers.begun, refused, ...ends])
    return readers.said().pid === null ? (typeof complaint === 'string' ? complaint : '') : null
  } finally {
    if (stdin === null) closeSync(input)
  }
}

/** Returns null if it has begun, or else why not. */
async function launchByRuntime(
  host: EngineContext,
  machine: Machine,
  process: Process,
  given: Launch,
  ends: Ends,
): Promise<string | null> {
  const { spec, generation } = machine.record
  const files = filesOf(host.paths.run(spec.id, generation), given.request.id)
  await writeFile(files.processFile, JSON.stringify(process), { mode: 0o600 })
  try {
    const launcher = spawnRuntime(host, machine, given, files)
    await Promise.race([given.readers.begun, launcher.failed, ...ends])
    // The runtime's own messages are only read until the process starts: then they are the command's.
    if (given.readers.said().pid === null) {
      launcher.kill()
      return launcher.complaint()
    }
    await Promise.race([launcher.finish(), ...ends])
    return null
  } finally {
    await Promise.all(Object.values(files).map((file) => rm(file, { force: true })))
  }
}

type Launcher = {
  /** Resolves when the runtime exits without having started the process. */
  failed: Promise<void>
  complaint: () => string
  kill: () => void
  /** The process has started: the runtime is not needed any more. */
  finish: () => Promise<void>
}

function spawnRuntime(
  host: EngineContext,
  machine: Machine,
  { request, readers, writeEnds, stdin }: Launch,
  files: ExecFiles,
): Launcher {
  const { spec, generation } = machine.record
  const driver = driverOf(host, machine)
  const paths = host.paths.run(spec.id, generation)
  const { stdout, stderr, report } = writeEnds
  const cgroupChild = driver.execDetaches ? commandGroup(host, paths, request.id) : null
  // runsc has messages of its own while the command runs; runc has them before, on the command's stderr.
  const own = driver.execDetaches ? null : createPipe()
  const outputs = [stdout, ...(own ? [own.writeEnd] : []), stderr, report]
  const fds = driver.execDetaches ? { extraFd: 3 } : { stderrFd: 3, extraFd: 4 }
  const charge = atExpenseOf(host.cgroups, spec.networkGroup)
  const [command, args] = charge(
    driver.binary,
    driver.execArgs(paths.container, files, { cgroupChild, ...fds }),
  )
  const launcher = startProgram(command, args, { env: { PATH: SAFE_PATH }, stdio: [stdin, ...outputs] })
  if (own) closeFd(own.writeEnd)
  const messages = own && openReader(own.readEnd)
  const said = boundedText(COMPLAINT_BYTES)
  messages?.on('data', (data: Buffer) => said.add(data))
  const complaint = () => {
    if (!driver.execDetaches) return said.text()
    const read: unknown = readers.outputs[1]?.socket.read()
    return Buffer.isBuffer(read) ? read.toString('utf8', 0, COMPLAINT_BYTES) : ''
  }
  const over = Promise.all([launcher.ended, messages && whenClosed(messages)]).then(
    ([{ exitCode }]) => exitCode,
  )
  const failed = over.then(async (code) => {
    // runc exits once it has started the process.
    if (driver.execDetaches && code === 0) await new Promise(() => {})
  })
  failed.catch(() => {})
  const finish = async () => {
    // runsc would stay to the end, but is not needed: the process itself reports how it ends.
    if (!driver.execDetaches) launcher.kill()
    await over
  }
  return { failed, complaint, kill: launcher.kill, finish }
}

function notBegun(machine: Machine, generation: number, complaint: string): EngineError {
  const { record, ending, frozen } = machine
  if (ending || record.state !== 'running' || record.generation !== generation)
    return new EngineError('not_running', 'The machine is being ended.')
  if (frozen || /paused container/.test(complaint)) return new EngineError('frozen', 'The machine is frozen.')
  return new EngineError(
    'process_refused',
    'The machine could not start another process: it may have too many.',
    {
      cause: new Error(complaint),
    },
  )
}
