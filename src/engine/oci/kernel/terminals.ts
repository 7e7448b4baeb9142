// Receives terminals: a runtime creates one inside of a machine and sends its master over a unix socket, for which
// Node has no function. The descriptor is used only once the kernel confirms that it is a master.

import koffi from 'koffi'
import { constants } from 'node:os'
import {
  AF_UNIX,
  messageType,
  SCM_RIGHTS,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_STREAM,
  SOL_SOCKET,
} from './socket-abi.ts'
import { closeFd, syscallError } from './syscalls.ts'

const libc = koffi.load('libc.so.6')
const socketFn = libc.func('int socket(int, int, int)')
const bindFn = libc.func('int bind(int, const void *, unsigned int)')
const listenFn = libc.func('int listen(int, int)')
const acceptFn = libc.func('int accept4(int, void *, void *, int)')
const receiveFn = libc.func('recvmsg', 'long', ['int', koffi.inout(koffi.pointer(messageType)), 'int'])
const fcntlFn = libc.func('int fcntl(int, int, long)')
const ioctlFn = libc.func('int ioctl(int, unsigned long, void *)')
const ioctlNumberFn = libc.func('int ioctl(int, unsigned long, long)')

const MSG_CMSG_CLOEXEC = 0x40000000
const MSG_DONTWAIT = 0x40
const F_GETFL = 3
const F_SETFL = 4
const O_NONBLOCK = 0o4000
const TIOCSWINSZ = 0x5414
/** Succeeds on masters alone. */
const TIOCGPTN = 0x80045430
/** Signals the foreground of a terminal. */
const TIOCSIG = 0x40045436
/** `struct sockaddr_un`: the family, then the path with its NUL. */
const PATH_BYTES = 107
/** `struct cmsghdr` with one descriptor: what is sent beyond it the kernel closes. */
const CONTROL = { bytes: 24, levelAt: 8, typeAt: 12, fdAt: 16 }
const ONE_FD = 20

const { EAGAIN, EINTR } = constants.errno

/** Listens on a unix socket. Throws if its path is too long, or taken. */
export function listenForTerminal(path: string): number {
  if (Buffer.byteLength(path) > PATH_BYTES) throw syscallError('bind', constants.errno.ENAMETOOLONG)
  const fd = socketFn(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) as number
  if (fd < 0) throw syscallError('socket', koffi.errno())
  const address = Buffer.alloc(2 + PATH_BYTES + 1)
  address.writeUInt16LE(AF_UNIX, 0)
  address.write(path, 2)
  if (bindFn(fd, address, address.length) === 0 && listenFn(fd, 1) === 0) return fd
  const error = koffi.errno()
  closeFd(fd)
  throw syscallError('bind', error)
}

/** Returns a connection that waits on a listening socket, without waiting; null if there is none yet. */
export function acceptConnection(listener: number): number | null {
  const fd = acceptFn(listener, null, null, SOCK_NONBLOCK | SOCK_CLOEXEC) as number
  if (fd >= 0) return fd
  const error = koffi.errno()
  if (error === EAGAIN || error === EINTR) return null
  throw syscallError('accept4', error)
}

/**
 * Returns the master of a terminal that was sent over a connection, not blocking from now on; null if nothing has arrived yet.
 * Throws if something else has arrived.
 */
export function receiveTerminal(connection: number): number | null {
  const control = Buffer.alloc(CONTROL.bytes)
  const head = {
    name: null,
    nameLength: 0,
    // The runtime also sends the terminal's name, which is not needed.
    pieces: { base: Buffer.alloc(4096), length: 4096 },
    pieceCount: 1,
    control,
    controlLength: control.length,
    flags: 0,
  }
  const received = Number(receiveFn(connection, head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC))
  if (received < 0) {
    const error = koffi.errno()
    if (error === EAGAIN || error === EINTR) return null
    throw syscallError('recvmsg', error)
  }
  const isDescriptor =
    control.readUInt32LE(0) === ONE_FD &&
    control.readInt32LE(CONTROL.levelAt) === SOL_SOCKET &&
    control.readInt32LE(CONTROL.typeAt) === SCM_RIGHTS
  if (!isDescriptor) throw new Error('the runtime sent no terminal')
  const fd = control.readInt32LE(CONTROL.fdAt)
  if (ioctlFn(fd, TIOCGPTN, Buffer.alloc(4)) === 0) {
    fcntlFn(fd, F_SETFL, Number(fcntlFn(fd, F_GETFL, 0)) | O_NONBLOCK)
    return fd
  }
  closeFd(fd)
  throw new Error('what the runtime sent is no terminal')
}

/** Tells what runs in the foreground, if the size is another. */
export function resizeTerminal(master: number, { columns, rows }: { columns: number; rows: number }): void {
  const size = Buffer.alloc(8)
  size.writeUInt16LE(rows, 0)
  size.writeUInt16LE(columns, 2)
  ioctlFn(master, TIOCSWINSZ, size)
}

/** Signals what runs in the foreground of a terminal; the kernel takes INT and QUIT alone. */
export function signalForeground(master: number, signal: 'INT' | 'QUIT'): void {
  ioctlNumberFn(master, TIOCSIG, constants.signals[`SIG${signal}`])
}
