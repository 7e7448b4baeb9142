// The kernel's connection tracking.

import { createKeyedLock } from '../../../lib/concurrency/keyed-lock.ts'
import { askForConnections, deleteConnection, readConnections, type Side, type Tracked } from './conntrack.ts'
import { type NetlinkSocket, openSocket } from './netlink-socket.ts'

const PART_BYTES = 64 * 1024
/** The answers to refusals of as many fit into a socket. */
const MAX_DELETIONS_AT_ONCE = 64

const protocols = new Map([
  [6, 'tcp'],
  [17, 'udp'],
])

/** A connection that a machine has begun. `redirected`: it goes to this host instead. */
export type Flow = { protocol: string; address: string; port: number; redirected: boolean }

export type Connections = {
  /**
   * The next owner of the address must not receive packets for the last one (reliability I10). Where the kernel does not
   * tell its connections, they end by their own timeouts.
   */
  forget(address: string): Promise<void>
  /**
   * Cuts the connections begun by the machine with this address that are not allowed any more: the next packet of each
   * is one of a new connection, for which the firewall's rules decide.
   */
  cut(address: string, isAllowed: (flow: Flow) => boolean): Promise<void>
  close(): void
}

export function openConnections(): Connections {
  const socket = openSocket(PART_BYTES)
  const locked = createKeyedLock()
  // Answers do not say to what.
  const inTurn = (work: () => Promise<void>) =>
    locked('kernel', async () => {
      try {
        await work()
      } catch (error) {
        socket.close()
        throw error
      }
    })

  const find = async (side: Side, address: string): Promise<Tracked[]> => {
    await socket.sendOnThread(askForConnections(side, address))
    const all: Tracked[] = []
    for (;;) {
      const { found, isLast } = readConnections(socket.receive())
      all.push(...found.filter((each) => each[side] === address))
      if (isLast) return all
    }
  }

  const remove = async (tracked: Tracked[]) => {
    for (let from = 0; from < tracked.length; from += MAX_DELETIONS_AT_ONCE) {
      const some = tracked.slice(from, from + MAX_DELETIONS_AT_ONCE)
      await socket.sendOnThread(Buffer.concat(some.map(deleteConnection)))
      while (hasAnswered(socket)) continue
    }
  }

  return {
    forget: (address) =>
      inTurn(async () => {
        for (const side of ['source', 'target'] as const) await remove(await find(side, address))
      }).catch(() => {}),

    cut: (address, isAllowed) =>
      inTurn(async () => {
        const begun = await find('source', address)
        await remove(begun.filter((each) => !isAllowed(flowOf(each))))
      }),

    close: () => socket.close(),
  }
}

function flowOf({ protocol, target, port, answeredBy }: Tracked): Flow {
  return {
    protocol: protocols.get(protocol) ?? String(protocol),
    address: target,
    port,
    redirected: answeredBy !== target,
  }
}

/** Reads a refusal. Returns false if there is no further one. A connection that has ended meanwhile needs no deletion. */
function hasAnswered(socket: NetlinkSocket): boolean {
  try {
    readConnections(socket.receive())
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return true
    if (code === 'EAGAIN') return false
    throw error
  }
}
