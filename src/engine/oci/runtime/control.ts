// The client of the control socket of a gVisor sandbox. The engine sends what `runsc exec` would send, without a
// process for each command (decisions/commands.md). The socket is in a directory that only root can open. Its format is
// internal to runsc: only sandboxes that run exactly the probed file (probes/control.ts) are called.
//
// A compromised sandbox controls its answers: they are bounded, and used only for its own commands.

import { statSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Process } from './bundle.ts'
import { CAPABILITIES, capabilityMask } from './capabilities.ts'
import { closeFd } from '../kernel/syscalls.ts'
import { connectUnix, type Listener, listenerOf, sendWithFds } from '../kernel/unix-sockets.ts'

/** Its answers have some tens of bytes, or a sentence with the command's name and PATH. */
const ANSWER_LENGTH = 262_144
/** Each piece of an answer costs a look at all of it. */
const ANSWER_PIECES = 1000
/** As many callers as wait at once, runsc's own queue has: 16. */
const BUSY_ATTEMPTS = 50
const BUSY_MS = 5

const CAP_SYS_ADMIN = 2 ** 21
const noCapabilities = {
  PermittedCaps: 0,
  InheritableCaps: 0,
  EffectiveCaps: 0,
  BoundingCaps: CAP_SYS_ADMIN,
  AmbientCaps: 0,
}

/** The file that a process runs. */
export type Program = { dev: number; ino: number }

/** `broken`: the connection ended, as the sandbox may have. */
export type Answer =
  | { kind: 'done'; result: unknown }
  | { kind: 'refused'; complaint: string }
  | { kind: 'broken' }

/** A connection to a sandbox, for one command. */
export type Control = {
  /** What the other end runs, and as whom. */
  program: Program
  owner: Pick<Listener, 'uid' | 'gid'>
  call: (method: string, arg: object, fds?: number[]) => Promise<Answer>
  close: () => void
}

/** Whether a sandbox runs the file that was probed: one that an earlier engine started may run an older one. */
export function runsProbed({ program }: Control, probed: Program): boolean {
  return program.dev === probed.dev && program.ino === probed.ino
}

/** Returns null if the socket has no listener, or too many callers wait already. */
export async function connectControl(runtimeRoot: string, container: string): Promise<Control | null> {
  const path = join(runtimeRoot, `runsc-${container}.sock`)
  for (let attempt = 0; attempt < BUSY_ATTEMPTS; attempt += 1) {
    const connected = connectUnix(path)
    if (connected.kind === 'connected') return controlOver(connected.fd)
    if (connected.kind === 'nobody') return null
    await delay(BUSY_MS)
  }
  return null
}

/** `pid`: within the sandbox. */
export type Executed = { kind: 'begun'; pid: number } | Exclude<Answer, { kind: 'done' }>

/** Its three streams, and what else it has open from 3 on. */
type Descriptors = [number, number, number, ...number[]]

/** Starts a process; the answer's result is its pid within the sandbox. */
export async function executeOver(
  control: Control,
  container: string,
  process: Process,
  fds: Descriptors,
): Promise<Executed> {
  return await execute(control, executeArgs(container, process), fds)
}

/** Starts a process that may set the sandbox's hostname, as no process of a unit may: the unit must not have any before it ends. */
export async function executeNamingOver(
  control: Control,
  container: string,
  process: Process,
  fds: Descriptors,
): Promise<Executed> {
  const only = { ...noCapabilities, PermittedCaps: CAP_SYS_ADMIN, EffectiveCaps: CAP_SYS_ADMIN }
  return await execute(control, { ...executeArgs(container, process), Capabilities: only }, fds)
}

/** Starts root's process that may mount in the sandbox, as no process of a unit may. It is to be the helper's alone. */
export async function executeMountingOver(
  control: Control,
  container: string,
  process: Process,
  fds: Descriptors,
): Promise<Executed> {
  const args = executeArgs(container, process)
  const mask = capabilityMask(CAPABILITIES) + CAP_SYS_ADMIN
  const most = {
    PermittedCaps: mask,
    InheritableCaps: 0,
    EffectiveCaps: mask,
    BoundingCaps: mask,
    AmbientCaps: 0,
  }
  return await execute(control, { ...args, Capabilities: most }, fds)
}

async function execute(control: Control, args: object, fds: Descriptors): Promise<Executed> {
  const all = { ...args, GuestFDs: [...fds.keys()] }
  const answer = await control.call('containerManager.ExecuteAsync', all, fds)
  if (answer.kind !== 'done') return answer
  const pid = answer.result
  return isWhole(pid, 0x7fff_ffff) && pid > 0 ? { kind: 'begun', pid } : { kind: 'broken' }
}

/** Returns the exit code, 128 + n for signal n; null if it cannot be known. */
export async function waitOver(control: Control, container: string, pid: number): Promise<number | null> {
  const answer = await control.call('containerManager.WaitPID', { PID: pid, CID: container })
  if (answer.kind !== 'done' || !isWhole(answer.result, 0xffff_ffff)) return null
  const signal = answer.result & 0x7f
  return signal === 0 ? (answer.result >> 8) & 0xff : 128 + signal
}

/** What runsc makes of the description of a process; limits and umask are the sandbox's own in both ways. */
function executeArgs(container: string, { user, args, env, cwd, capabilities }: Process): object {
  return {
    argv: args,
    envv: env,
    wd: cwd,
    KUID: user.uid,
    KGID: user.gid,
    ExtraKGIDs: user.additionalGids,
    Capabilities: {
      PermittedCaps: capabilityMask(capabilities.permitted),
      InheritableCaps: capabilityMask(capabilities.inheritable),
      EffectiveCaps: capabilityMask(capabilities.effective),
      BoundingCaps: capabilityMask(capabilities.bounding),
      AmbientCaps: 0,
    },
    // Older ones do not know it, and never let a process gain any.
    NoNewPrivileges: true,
    StdioIsPty: false,
    ContainerID: container,
  }
}

function controlOver(fd: number): Control | null {
  const listener = listenerOf(fd)
  const program = listener && programOf(listener.pid)
  if (listener === null || program === null) {
    closeFd(fd)
    return null
  }
  const socket = new Socket({ fd, readable: true, writable: true })
  socket.on('error', () => {})
  const answers = answersOf(socket)
  return {
    program,
    owner: listener,
    call: async (method, arg, fds = []) => {
      if (socket.destroyed) return { kind: 'broken' }
      const bytes = Buffer.from(JSON.stringify({ method, arg }))
      const sent = fds.length === 0 ? 0 : sendWithFds(fd, bytes, fds)
      if (sent === null) return { kind: 'broken' }
      if (sent < bytes.length) socket.write(bytes.subarray(sent))
      return await answers()
    },
    close: () => socket.destroy(),
  }
}

function programOf(pid: number): Program | null {
  try {
    const { dev, ino } = statSync(`/proc/${pid}/exe`)
    return { dev, ino }
  } catch {
    return null
  }
}

/** Answers have no end of their own: one is there once it can be read. */
function answersOf(socket: Socket): () => Promise<Answer> {
  let said = ''
  let pieces = 0
  let asked: ((answer: Answer) => void) | null = null
  const tell = (answer: Answer) => {
    const told = asked
    asked = null
    said = ''
    told?.(answer)
  }
  socket.setEncoding('utf8')
  socket.on('data', (data: string) => {
    said += data
    pieces += 1
    const isTooMuch = said.length > ANSWER_LENGTH || pieces > ANSWER_PIECES
    const answer = isTooMuch || asked === null ? null : answerIn(said)
    if (answer) tell(answer)
    // Nothing was asked, or it is no answer: nothing that comes here is believed any more.
    else if (isTooMuch || asked === null) socket.destroy()
  })
  socket.on('close', () => tell({ kind: 'broken' }))
  return () => {
    if (socket.destroyed) return Promise.resolve({ kind: 'broken' })
    return new Promise((resolve) => (asked = resolve))
  }
}

function answerIn(said: string): Answer | null {
  let read: unknown
  try {
    read = JSON.parse(said)
  } catch {
    return null
  }
  if (typeof read !== 'object' || read === null) return { kind: 'broken' }
  const { success, err, result } = read as Record<string, unknown>
  if (success === true) return { kind: 'done', result }
  return { kind: 'refused', complaint: typeof err === 'string' ? err : '' }
}

function isWhole(value: unknown, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most
}
