// Asks the kernel's packet filter through sockets of this process: a query five times a second must not start a
// program each time, nor must a machine's start wait for one. All other changes are made with nft.
//
// The kernel writes its answer while it receives the query, and each next part when the one before is read. So
// no query ever waits, and a missing answer is a failure. A change waits for one that another program makes, so it is sent
// by a thread of its own.

import koffi from 'koffi'
import { constants } from 'node:os'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  askForElements,
  askForGeneration,
  changeElements,
  type Counted,
  type ElementChange,
  readElements,
  readGeneration,
  readVerdict,
} from './netlink.ts'

const libc = koffi.load('libc.so.6')
const socketFn = libc.func('int socket(int, int, int)')
const sendFn = libc.func('long send(int, const void *, size_t, int)')
const recvFn = libc.func('long recv(int, _Out_ void *, size_t, int)')
const closeFn = libc.func('int close(int)')

const AF_NETLINK = 16
const NETLINK_NETFILTER = 12
const SOCK_RAW_CLOEXEC = 3 | 0o2000000
const MSG_DONTWAIT = 0x40

/** The kernel puts at most 32 KB into one part. */
const PART_BYTES = 64 * 1024
const VERDICT_BYTES = 16 * 1024
/** Other work of this process runs after this time. */
const TURN_MS = 1

/** For one user at a time, because answers carry no id. */
export type Netfilter = {
  /** Returns the number of the latest change of this network namespace's rules. Packets do not change it. */
  generation: () => number
  /**
   * Passes on the elements of a set of the family `ip`, part by part. If the result is not `whole`, rules were
   * changed meanwhile and some elements may be missing.
   */
  readCounts(
    set: { table: string; set: string },
    onPart: (counted: Counted[]) => void,
  ): Promise<{ isWhole: boolean }>
  /**
   * Changes elements of a table of the family `inet`, all or none. Returns false if the kernel refused; nft then says why.
   */
  change(table: string, changes: ElementChange[]): Promise<boolean>
  close(): void
}

export function openNetfilter(): Netfilter {
  const part = Buffer.alloc(PART_BYTES)
  const verdict = Buffer.alloc(VERDICT_BYTES)
  // Kept open: closing one waits for any change of the rules in progress.
  let socket: number | null = null

  const close = () => {
    if (socket !== null) closeFn(socket)
    socket = null
  }

  /** Of its own: a query may come while a change waits. */
  let changing: number | null = null

  const closeChanging = () => {
    if (changing !== null) closeFn(changing)
    changing = null
  }

  const ask = (question: Buffer) => {
    socket ??= check('socket', socketFn(AF_NETLINK, SOCK_RAW_CLOEXEC, NETLINK_NETFILTER))
    check('send', sendFn(socket, question, question.length, MSG_DONTWAIT))
  }

  const receive = (): Buffer => {
    if (socket === null) throw new Error('the packet filter was not asked')
    return part.subarray(0, check('recv', recvFn(socket, part, part.length, MSG_DONTWAIT)))
  }

  return {
    generation() {
      try {
        ask(askForGeneration())
        return readGeneration(receive())
      } catch (error) {
        close() // and with it what of the answer is still in it
        throw error
      }
    },

    async readCounts(set, onPart) {
      let isWhole = true
      let turnSince = performance.now()
      try {
        ask(askForElements(set))
        for (;;) {
          const { counted, isLast, isDisturbed } = readElements(receive())
          if (isDisturbed) isWhole = false
          if (counted.length > 0) onPart(counted)
          if (isLast) return { isWhole }
          if (performance.now() - turnSince < TURN_MS) continue
          await nextTurn()
          turnSince = performance.now()
        }
      } catch (error) {
        close()
        throw error
      }
    },

    async change(table, changes) {
      try {
        changing ??= check('socket', socketFn(AF_NETLINK, SOCK_RAW_CLOEXEC, NETLINK_NETFILTER))
        await sendOnThread(changing, changeElements(table, changes))
        const length = check('recv', recvFn(changing, verdict, verdict.length, MSG_DONTWAIT))
        readVerdict(verdict.subarray(0, length))
        return true
      } catch {
        closeChanging() // and with it what of the answer is still in it
        return false
      }
    },

    close() {
      close()
      closeChanging()
    },
  }
}

async function sendOnThread(socket: number, bytes: Buffer): Promise<void> {
  const sent = await new Promise((resolve, reject) => {
    sendFn.async(socket, bytes, bytes.length, 0, (error: unknown, count: unknown) =>
      error ? reject(error) : resolve(count),
    )
  })
  if (Number(sent) !== bytes.length) throw new Error('the packet filter did not take the changes')
}

function check(call: string, result: unknown): number {
  const value = Number(result)
  if (value >= 0) return value
  const errno = koffi.errno()
  const name = Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`
  throw Object.assign(new Error(`${call}: ${name}`), { code: name })
}
