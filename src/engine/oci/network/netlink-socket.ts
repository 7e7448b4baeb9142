// A socket to the kernel's packet filter (nfnetlink).
//
// The kernel writes its answer while it receives the question, and each next part when the one before is read. So
// no question ever waits, and a missing answer is a failure.

import koffi from 'koffi'
import { constants } from 'node:os'

const libc = koffi.load('libc.so.6')
const socketFn = libc.func('int socket(int, int, int)')
const sendFn = libc.func('long send(int, const void *, size_t, int)')
const recvFn = libc.func('long recv(int, _Out_ void *, size_t, int)')
const closeFn = libc.func('int close(int)')

const AF_NETLINK = 16
const NETLINK_NETFILTER = 12
const SOCK_RAW_CLOEXEC = 3 | 0o2000000
const MSG_DONTWAIT = 0x40

/** For one user at a time, because answers carry no id. */
export type NetlinkSocket = {
  send(question: Buffer): void
  /** The same on a thread of its own, for what may take its time or wait for another program. */
  sendOnThread(question: Buffer): Promise<void>
  /** Returns the next part of the answer, which is good until the one after it. Throws EAGAIN if there is none. */
  receive(): Buffer
  /** With what of an answer is still in it. The next question opens another one. */
  close(): void
}

export function openSocket(partBytes: number): NetlinkSocket {
  const part = Buffer.alloc(partBytes)
  // Kept open: closing one waits for any change of the rules in progress.
  let socket: number | null = null
  const open = () => (socket ??= check('socket', socketFn(AF_NETLINK, SOCK_RAW_CLOEXEC, NETLINK_NETFILTER)))

  return {
    send(question) {
      check('send', sendFn(open(), question, question.length, MSG_DONTWAIT))
    },

    async sendOnThread(question) {
      const to = open()
      const sent = await new Promise((resolve, reject) => {
        sendFn.async(to, question, question.length, 0, (error: unknown, count: unknown) =>
          error ? reject(error) : resolve(count),
        )
      })
      if (Number(sent) !== question.length) throw new Error('the packet filter did not take a message')
    },

    receive() {
      if (socket === null) throw new Error('the packet filter was not asked')
      return part.subarray(0, check('recv', recvFn(socket, part, part.length, MSG_DONTWAIT)))
    },

    close() {
      if (socket !== null) closeFn(socket)
      socket = null
    },
  }
}

function check(call: string, result: unknown): number {
  const value = Number(result)
  if (value >= 0) return value
  const errno = koffi.errno()
  const name = Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`
  throw Object.assign(new Error(`${call}: ${name}`), { code: name })
}
