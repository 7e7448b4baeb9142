// Kernel calls for which Node has no function. All are fast and synchronous; none may run on a pool thread, because
// mounts are process-wide.

import koffi from 'koffi'
import { closeSync, constants as files, openSync } from 'node:fs'
import { constants } from 'node:os'

const libc = koffi.load('libc.so.6')
const mountFn = libc.func('int mount(const char *, const char *, const char *, unsigned long, const char *)')
const umount2Fn = libc.func('int umount2(const char *, int)')
const pipe2Fn = libc.func('int pipe2(_Out_ int *, int)')
const prctlFn = libc.func('int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long)')
const waitpidFn = libc.func('int waitpid(int, _Out_ int *, int)')
const waitidFn = libc.func('int waitid(int, int, _Out_ uint8_t *, int)')
const closeFn = libc.func('int close(int)')
const openat2Fn = libc.func('long syscall(long, long, const char *, void *, long)')
const pidfdOpenFn = libc.func('long syscall(long, int, unsigned int)')
const ioctlFn = libc.func('int ioctl(int, unsigned long, void *)')
const mkfifoFn = libc.func('int mkfifo(const char *, unsigned int)')
const pollFn = libc.func('int poll(_Inout_ uint8_t *, unsigned long, int)')
const setnsFn = libc.func('int setns(int, int)')
const sethostnameFn = libc.func('int sethostname(const char *, size_t)')

const MS_NOSUID = 2
const MS_NODEV = 4
const MNT_DETACH = 2
const O_CLOEXEC = 0o2000000
const PR_SET_CHILD_SUBREAPER = 36
const WNOHANG = 1
const WEXITED = 4
const WNOWAIT = 0x01000000
const P_ALL = 0
/** Of `siginfo_t` on 64-bit Linux. */
const SIGINFO = { bytes: 128, pidAt: 16 }
const SYS_OPENAT2 = 437
/** IN_ROOT, NO_MAGICLINKS and NO_XDEV. */
const RESOLVE_INSIDE = 0x10 | 0x02 | 0x01
const RESOLVE_NO_SYMLINKS = 0x04
/** `struct open_how`: flags, mode, resolve. */
const OPEN_HOW_BYTES = 24
const OPEN_HOW_RESOLVE_AT = 16
const OPEN_ATTEMPTS = 100
const SYS_PIDFD_OPEN = 434
/** `PIDFD_GET_INFO` with the first version of `struct pidfd_info`. */
const PIDFD_GET_INFO = 0xc040ff0b
const PIDFD_INFO = { bytes: 64, exitCodeAt: 60 }
const PIDFD_INFO_EXIT = 8n
const DIRECTORY = files.O_RDONLY | files.O_DIRECTORY | files.O_NOFOLLOW
const FIONREAD = 0x541b
/** `struct pollfd`. */
const POLLFD = { bytes: 8, answerAt: 6 }
const POLLERR = 8
const CLONE_NEWUTS = 0x04000000
/**
 * Node has no constant for it. The descriptor can be neither read nor written, and opening a pipe or device with it
 * has no effect on it.
 */
export const O_PATH = 0o10000000

/**
 * Mounts an overlay with nodev and nosuid. Who sees the mount can read the paths of its layers: those of the disk, which
 * name the machine, are given by a descriptor.
 */
export function mountOverlay(target: string, layers: { lower: string; upper: string; work: string }): void {
  const [upper, work] = [layers.upper, layers.work].map((path) => openSync(path, DIRECTORY))
  try {
    const own = `upperdir=/proc/self/fd/${upper},workdir=/proc/self/fd/${work}`
    const options = `lowerdir=${layers.lower},${own}`
    check('mount', mountFn('overlay', target, 'overlay', MS_NOSUID | MS_NODEV, options))
  } finally {
    for (const fd of [upper, work]) if (fd !== undefined) closeSync(fd)
  }
}

export function makeFifo(path: string): void {
  check('mkfifo', mkfifoFn(path, 0o600))
}

/** Whether a pipe, of which this is the writing end, has no reader any more. */
export function hasNoReader(fd: number): boolean {
  const asked = Buffer.alloc(POLLFD.bytes)
  asked.writeInt32LE(fd, 0)
  if ((pollFn(asked, 1, 0) as number) < 0) throw syscallError('poll', koffi.errno())
  return (asked.readInt16LE(POLLFD.answerAt) & POLLERR) !== 0
}

/** How many bytes wait in a pipe. */
export function bytesInPipe(fd: number): number {
  const count = Buffer.alloc(4)
  ioctl(fd, FIONREAD, count)
  return count.readInt32LE(0)
}

/** Names the host of another process's UTS namespace. Only the calling thread goes there, and comes back. */
export function setHostnameOf(pid: number, hostname: string): void {
  const [there, here] = [`/proc/${pid}/ns/uts`, '/proc/self/ns/uts'].map((path) => openSync(path, 'r'))
  try {
    check('setns', setnsFn(there, CLONE_NEWUTS))
    try {
      check('sethostname', sethostnameFn(hostname, Buffer.byteLength(hostname)))
    } finally {
      check('setns', setnsFn(here, CLONE_NEWUTS))
    }
  } finally {
    for (const fd of [there, here]) if (fd !== undefined) closeSync(fd)
  }
}

/** Takes a mount out of the tree; it ends when its last user does. Succeeds if it is not mounted. */
export function detachMount(target: string): void {
  const result = umount2Fn(target, MNT_DETACH) as number
  const error = koffi.errno()
  if (result !== 0 && error !== constants.errno.EINVAL && error !== constants.errno.ENOENT) {
    throw syscallError('umount2', error)
  }
}

/** A real pipe: a program in a machine may reopen /dev/stdout, which a socket pair refuses. */
export function createPipe(): { readEnd: number; writeEnd: number } {
  const fds = [0, 0]
  check('pipe2', pipe2Fn(fds, O_CLOEXEC))
  return { readEnd: fds[0] ?? -1, writeEnd: fds[1] ?? -1 }
}

/** Closes a descriptor that was made here: Node's own close only knows what Node opened. */
export function closeFd(fd: number): void {
  closeFn(fd)
}

/** From now on orphans among our descendants become our children, so that we learn how they end. */
export function becomeSubreaper(): void {
  check('prctl', prctlFn(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

export type Wait = { kind: 'running' } | { kind: 'not-ours' } | { kind: 'ended'; end: EndOfChild }
/** `signal`: 0 if it ended by itself. */
export type EndOfChild = { code: number; signal: number }

/** Returns, without waiting, how a child of ours ended, which is reaped then. */
export function tryWait(pid: number): Wait {
  const status = [0]
  const result = waitpidFn(pid, status, WNOHANG) as number
  if (result === 0) return { kind: 'running' }
  if (result < 0) return { kind: 'not-ours' }
  const raw = status[0] ?? 0
  return { kind: 'ended', end: { code: (raw >> 8) & 0xff, signal: raw & 0x7f } }
}

/** Returns a child of ours that has ended, without reaping it; null if there is none. */
export function peekEndedChild(): number | null {
  const info = Buffer.alloc(SIGINFO.bytes)
  const result = waitidFn(P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT) as number
  const pid = info.readInt32LE(SIGINFO.pidAt)
  return result < 0 || pid === 0 ? null : pid
}

/**
 * Opens `path` as if the directory `rootFd` were `/`, so that no link can lead out of it, or into another file system
 * mounted in it. Throws errors with a code, like Node.
 */
export function openInRoot(rootFd: number, path: string, flags: number, { links = true } = {}): number {
  const how = Buffer.alloc(OPEN_HOW_BYTES)
  how.writeBigUInt64LE(BigInt(flags | O_CLOEXEC), 0)
  how.writeBigUInt64LE(BigInt(RESOLVE_INSIDE | (links ? 0 : RESOLVE_NO_SYMLINKS)), OPEN_HOW_RESOLVE_AT)
  // A NUL would end the path early.
  if (path.includes('\0')) throw syscallError('openat2', constants.errno.EINVAL)
  for (let attempt = 1; ; attempt += 1) {
    const fd = Number(openat2Fn(SYS_OPENAT2, rootFd, path, how, how.length))
    if (fd >= 0) return fd
    const error = koffi.errno()
    // Something on this host was just renamed, and the kernel could not tell whether it matters.
    if (error !== constants.errno.EAGAIN || attempt === OPEN_ATTEMPTS) throw syscallError('openat2', error)
  }
}

/**
 * Returns a descriptor of a process, which stays valid for that process even if its id is reused. Null if there is no
 * such process.
 */
export function openProcess(pid: number): number | null {
  const fd = Number(pidfdOpenFn(SYS_PIDFD_OPEN, pid, 0))
  return fd < 0 ? null : fd
}

/**
 * Returns the signal that ended the process of a descriptor, 0 if it ended by itself. Null while it has not ended and
 * been reaped, and if the kernel does not tell (before 6.15).
 */
export function endingSignal(processFd: number): number | null {
  const info = Buffer.alloc(PIDFD_INFO.bytes)
  info.writeBigUInt64LE(PIDFD_INFO_EXIT, 0)
  const told = ioctlFn(processFd, PIDFD_GET_INFO, info) === 0
  if (!told || (info.readBigUInt64LE(0) & PIDFD_INFO_EXIT) === 0n) return null
  return info.readInt32LE(PIDFD_INFO.exitCodeAt) & 0x7f
}

/** Sends a request to the file system of a descriptor; the answer is in `buffer`. */
export function ioctl(fd: number, request: number, buffer: Buffer): void {
  check('ioctl', ioctlFn(fd, request, buffer))
}

function check(call: string, result: unknown): void {
  if (result !== 0) throw syscallError(call, koffi.errno())
}

export function syscallError(call: string, errno: number): Error {
  const name = Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `errno ${errno}`
  return Object.assign(new Error(`${call}: ${name}`), { code: name })
}
