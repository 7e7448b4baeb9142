// Starts a program as Node's `spawn` does, but without a copy of this process: Node forks, and the kernel copies the page
// tables of all of the engine's memory for a process that becomes another program at once. posix_spawn(3) shares it until
// then: 1 ms instead of 5 to 15 of the engine's only thread (decisions/creates.md).
//
// What Node does for its children is the caller's here: to wait for them, and to kill what takes too long (programs.ts).

import koffi from 'koffi'
import { constants, existsSync } from 'node:fs'
import { constants as osConstants } from 'node:os'
import { syscallError } from './syscalls.ts'

const libc = koffi.load('libc.so.6')
const spawnFn = libc.func(
  'int posix_spawn(_Out_ int *, const char *, void *, void *, const char **, const char **)',
)
const attrInitFn = libc.func('int posix_spawnattr_init(void *)')
const attrDestroyFn = libc.func('int posix_spawnattr_destroy(void *)')
const attrFlagsFn = libc.func('int posix_spawnattr_setflags(void *, short)')
const attrDefaultsFn = libc.func('int posix_spawnattr_setsigdefault(void *, void *)')
const attrMaskFn = libc.func('int posix_spawnattr_setsigmask(void *, void *)')
const actionsInitFn = libc.func('int posix_spawn_file_actions_init(void *)')
const actionsDestroyFn = libc.func('int posix_spawn_file_actions_destroy(void *)')
const actionsDupFn = libc.func('int posix_spawn_file_actions_adddup2(void *, int, int)')
const actionsCloseFn = libc.func('int posix_spawn_file_actions_addclose(void *, int)')
const actionsOpenFn = libc.func(
  'int posix_spawn_file_actions_addopen(void *, int, const char *, int, unsigned int)',
)
const actionsDirectoryFn = libc.func('int posix_spawn_file_actions_addchdir_np(void *, const char *)')

/** More than `posix_spawnattr_t` and `posix_spawn_file_actions_t` have on any 64-bit Linux. */
const STRUCT_BYTES = 1024
const SIGNAL_SET_BYTES = 128
const SET_SIGNAL_DEFAULTS = 0x04
const SET_SIGNAL_MASK = 0x08
const SET_SESSION = 0x80

/** Below the usual limit of descriptors. */
const FAR = 900

export type Spawned = {
  /** The whole environment. */
  env: Record<string, string>
  cwd?: string
  /** What it is called, if not as the command. */
  argv0?: string
  /** The program's descriptors from 0 on; null is /dev/null. It has no others, since all of ours are closed by an execve. */
  stdio: (number | null)[]
}

/** The program begins a session, with the usual signals. Returns its pid, to be waited for. */
export function spawnProgram(command: string, args: string[], spawned: Spawned): number {
  const { env, cwd, argv0 = command, stdio } = spawned
  const [attributes, actions] = [Buffer.alloc(STRUCT_BYTES), Buffer.alloc(STRUCT_BYTES)]
  // `sigfillset` leaves out two signals of the C library, which it then has programs ignore.
  const [all, none] = [Buffer.alloc(SIGNAL_SET_BYTES, 0xff), Buffer.alloc(SIGNAL_SET_BYTES)]
  check(attrInitFn(attributes))
  check(actionsInitFn(actions))
  try {
    check(attrFlagsFn(attributes, SET_SIGNAL_DEFAULTS | SET_SIGNAL_MASK | SET_SESSION))
    check(attrDefaultsFn(attributes, all))
    check(attrMaskFn(attributes, none))
    addDescriptors(actions, stdio)
    if (cwd !== undefined) check(actionsDirectoryFn(actions, cwd))
    const pid = [0]
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    const path = findProgram(command, env)
    check(spawnFn(pid, path, actions, attributes, [argv0, ...args, null], [...variables, null]))
    return pid[0] ?? -1
  } finally {
    actionsDestroyFn(actions)
    attrDestroyFn(attributes)
  }
}

/** One that another would replace before it is passed on is first put out of the way. */
function addDescriptors(actions: Buffer, stdio: (number | null)[]): void {
  const isInTheWay = (fd: number | null, at: number) => fd !== null && fd < stdio.length && fd !== at
  const away = [...stdio.entries()].filter(([at, fd]) => isInTheWay(fd, at))
  for (const [at, fd] of away) check(actionsDupFn(actions, fd, FAR + at))
  for (const [at, fd] of stdio.entries()) {
    if (fd === null) check(actionsOpenFn(actions, at, '/dev/null', constants.O_RDWR, 0))
    else check(actionsDupFn(actions, isInTheWay(fd, at) ? FAR + at : fd, at))
  }
  for (const [at] of away) check(actionsCloseFn(actions, FAR + at))
}

/** Where a shell with this environment finds it. */
function findProgram(command: string, { PATH = '' }: Record<string, string>): string {
  if (command.includes('/')) return command
  const places = PATH.split(':').map((directory) => `${directory}/${command}`)
  const found = places.find((place) => existsSync(place))
  if (found === undefined) throw syscallError('posix_spawn', osConstants.errno.ENOENT)
  return found
}

/** These return the error instead of setting errno. */
function check(result: unknown): void {
  if (result !== 0) throw syscallError('posix_spawn', Number(result))
}
