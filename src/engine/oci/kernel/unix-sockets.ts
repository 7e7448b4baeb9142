// Unix sockets over which descriptors are passed, for which Node has no function.

import koffi from 'koffi'
import { closeSync, constants as files, openSync } from 'node:fs'
import { constants } from 'node:os'
import { basename, dirname } from 'node:path'
import {
  AF_UNIX,
  messageType,
  SCM_RIGHTS,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_STREAM,
  SOL_SOCKET,
} from './socket-abi.ts'
import { closeFd, O_PATH, syscallError } from './syscalls.ts'

const libc = koffi.load('libc.so.6')
const socketFn = libc.func('int socket(int, int, int)')
const socketpairFn = libc.func('int socketpair(int, int, int, _Out_ int *)')
const connectFn = libc.func('int connect(int, const void *, unsigned int)')
const sendmsgFn = libc.func('sendmsg', 'long', ['int', koffi.pointer(messageType), 'int'])
const getsockoptFn = libc.func('int getsockopt(int, int, int, _Out_ uint8_t *, _Inout_ uint32_t *)')

const SO_PEERCRED = 17
const MSG_NOSIGNAL = 0x4000
/** `struct ucred`: pid, uid, gid. */
const UCRED_BYTES = 12
/** What a `sockaddr_un` has for a path and its NUL. */
const PATH_BYTES = 108
const FAMILY_BYTES = 2
/** `struct cmsghdr`: length, level, type. */
const CMSG_HEADER_BYTES = 16
const FD_BYTES = 4

export type Connected = { kind: 'connected'; fd: number } | { kind: 'busy' } | { kind: 'nobody' }

/**
 * Connects without waiting to the socket at an absolute path, whose directory must be our own. `busy`: it has as many
 * callers as may wait; `nobody`: the socket has no listener.
 */
export function connectUnix(path: string): Connected {
  const fd = socketFn(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) as number
  if (fd < 0) return { kind: 'nobody' }
  const isLong = Buffer.byteLength(path) >= PATH_BYTES
  let directory: number | null = null
  try {
    if (isLong) directory = openSync(dirname(path), O_PATH | files.O_DIRECTORY)
    const short = directory === null ? path : `/proc/self/fd/${directory}/${basename(path)}`
    const address = Buffer.alloc(FAMILY_BYTES + PATH_BYTES)
    address.writeUInt16LE(AF_UNIX, 0)
    // The last byte stays NUL.
    address.write(short, FAMILY_BYTES, PATH_BYTES - 1, 'utf8')
    if (connectFn(fd, address, address.length) === 0) return { kind: 'connected', fd }
    const kind = koffi.errno() === constants.errno.EAGAIN ? 'busy' : 'nobody'
    closeFd(fd)
    return { kind }
  } catch {
    closeFd(fd)
    return { kind: 'nobody' }
  } finally {
    if (directory !== null) closeSync(directory)
  }
}

/** Two ends of one connection. */
export function createSocketPair(): [number, number] {
  const fds = [0, 0]
  if (socketpairFn(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) !== 0)
    throw syscallError('socketpair', koffi.errno())
  return [fds[0] ?? -1, fds[1] ?? -1]
}

/** Sends as much of the bytes as is taken at once, with descriptors beside the first of them. Null: nothing was sent. */
export function sendWithFds(fd: number, bytes: Buffer, passed: number[]): number | null {
  const control = Buffer.alloc(CMSG_HEADER_BYTES + Math.ceil((passed.length * FD_BYTES) / 8) * 8)
  control.writeBigUInt64LE(BigInt(CMSG_HEADER_BYTES + passed.length * FD_BYTES), 0)
  control.writeInt32LE(SOL_SOCKET, 8)
  control.writeInt32LE(SCM_RIGHTS, 12)
  for (const [index, one] of passed.entries()) control.writeInt32LE(one, CMSG_HEADER_BYTES + index * FD_BYTES)
  const message = {
    name: null,
    nameLength: 0,
    pieces: { base: bytes, length: bytes.length },
    pieceCount: 1,
    control,
    controlLength: control.length,
    flags: 0,
  }
  const sent = Number(sendmsgFn(fd, message, MSG_NOSIGNAL))
  return sent > 0 ? sent : null
}

export type Listener = { pid: number; uid: number; gid: number }

/** Returns who listens at the other end; null if the kernel does not tell. */
export function listenerOf(fd: number): Listener | null {
  const credentials = Buffer.alloc(UCRED_BYTES)
  if (getsockoptFn(fd, SOL_SOCKET, SO_PEERCRED, credentials, [UCRED_BYTES]) !== 0) return null
  const [pid, uid, gid] = [0, 4, 8].map((at) => credentials.readInt32LE(at)) as [number, number, number]
  return pid > 0 ? { pid, uid, gid } : null
}
