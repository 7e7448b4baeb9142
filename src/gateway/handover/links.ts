// Connections to the gateways of other hosts. A few to each host that visits are handed over to are open in advance, so that
// no visitor waits for a TLS handshake. A host that does not answer is away until it does again: visitors are told so at once.

import type { Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { type Clock, MINUTE, SECOND } from '../../lib/clock.ts'
import { type FleetIdentity, fleetNameOf } from '../../lib/fleet-identity.ts'
import { fleetTls, PROBE_AFTER_MS } from '../../lib/ipc/fleet-tls.ts'
import type { Log } from '../../lib/log.ts'
import { addressText } from '../../lib/setting-values.ts'
import type { Door } from '../server-link/doors.ts'
import { answers, HANDOVER_PROTOCOL, type HandedVisit, type Handover } from './protocol.ts'

const SPARE = 8
/** Until then a visit that was handed over has its answer, mostly: a handshake costs both sides a millisecond. */
const REFILL_AFTER_MS = 20
/** How long connections are kept open for a host to which nothing is handed over. */
const KEPT_MS = 10 * MINUTE
/** Of a connection, and of the answer to a line. */
const ANSWER_WITHIN_MS = 5 * SECOND

export type Links = {
  /** Returns the connection once the other gateway has taken the visit; null if it does not answer. */
  begin(door: Door, visit: HandedVisit): Promise<TLSSocket | null>
  /** Whether the other gateway says yes to something that is no visit. */
  ask(door: Door, asked: Handover): Promise<boolean>
  /** Tries those that were away, and closes what is not needed. Called every few seconds. */
  look(doors: Door[]): void
  close(): void
}

type Link = {
  where: string
  spare: TLSSocket[]
  opening: number
  isRefilling: boolean
  usedMs: number
  isAway: boolean
}
/** `closed`: the other side ended the connection, as when its process was restarted. */
type Answer = 'yes' | 'no' | 'closed' | 'late'

export function createLinks({
  identity,
  clock,
  log,
}: {
  identity: () => FleetIdentity
  clock: Pick<Clock, 'monotonicMs'>
  log: Log
}): Links {
  const links = new Map<string, Link>()
  const open = new Set<TLSSocket>()
  let isClosed = false

  function linkTo(door: Door): Link {
    const where = addressText(door)
    const known = links.get(door.hostId)
    if (known?.where === where) return known
    if (known) drop(known)
    const made = {
      where,
      spare: [],
      opening: 0,
      isRefilling: false,
      usedMs: 0,
      isAway: false,
    }
    links.set(door.hostId, made)
    return made
  }

  function drop(link: Link): void {
    for (const socket of link.spare.splice(0)) socket.destroy()
  }

  function openTo(door: Door): Promise<TLSSocket | null> {
    const socket = connect({
      host: door.host,
      port: door.port,
      ...fleetTls(identity()),
      ALPNProtocols: [HANDOVER_PROTOCOL],
      servername: fleetNameOf({ role: 'gateway', host: door.name }),
    })
    open.add(socket)
    socket.setNoDelay(true).setKeepAlive(true, PROBE_AFTER_MS)
    return new Promise((resolve) => {
      const late = setTimeout(() => socket.destroy(), ANSWER_WITHIN_MS)
      socket.on('error', (error) => {
        log.debug({ host: door.name, error: error.message }, "connection to another host's gateway lost")
      })
      socket.once('close', () => {
        clearTimeout(late)
        open.delete(socket)
        resolve(null)
      })
      socket.once('secureConnect', () => {
        clearTimeout(late)
        resolve(socket)
      })
    })
  }

  function keep(link: Link, socket: TLSSocket): void {
    if (isClosed || link.isAway || link.spare.length >= SPARE) return void socket.destroy()
    link.spare.push(socket)
    // Nothing is said on it until it is used, so this is its end.
    const end = () => {
      if (!link.spare.includes(socket)) return
      link.spare.splice(link.spare.indexOf(socket), 1)
      socket.destroy()
    }
    socket.once('readable', end)
    socket.once('close', end)
  }

  function refillSoon(door: Door, link: Link): void {
    if (link.spare.length === 0) return refill(door, link)
    if (link.isRefilling) return
    link.isRefilling = true
    setTimeout(() => {
      link.isRefilling = false
      refill(door, link)
    }, REFILL_AFTER_MS).unref()
  }

  function refill(door: Door, link: Link): void {
    while (!isClosed && !link.isAway && link.spare.length + link.opening < SPARE) {
      link.opening += 1
      void openTo(door).then((socket) => {
        link.opening -= 1
        if (socket) keep(link, socket)
      })
    }
  }

  function isAway(door: Door, link: Link): null {
    if (!link.isAway) log.warn({ host: door.name, address: link.where }, 'gateway of another host is away')
    link.isAway = true
    drop(link)
    return null
  }

  /** Says the line on a connection that answers. */
  async function say(
    door: Door,
    line: Handover,
  ): Promise<{ socket: TLSSocket; answer: 'yes' | 'no' } | null> {
    const link = linkTo(door)
    link.usedMs = clock.monotonicMs()
    if (link.isAway) return null
    for (let spare = link.spare.pop(); spare; spare = link.spare.pop()) {
      const answer = await askOn(spare, line)
      if (answer === 'yes' || answer === 'no') return { socket: spare, answer }
      if (answer === 'late') return isAway(door, link)
    }
    const socket = await openTo(door)
    const answer = socket && (await askOn(socket, line))
    if (socket && (answer === 'yes' || answer === 'no')) return { socket, answer }
    return isAway(door, link)
  }

  return {
    async begin(door, visit) {
      const said = await say(door, visit)
      if (said) refillSoon(door, linkTo(door))
      if (said?.answer === 'yes') return said.socket
      said?.socket.destroy()
      return null
    },
    async ask(door, asked) {
      const said = await say(door, asked)
      if (said) keep(linkTo(door), said.socket)
      return said?.answer === 'yes'
    },
    look(doors) {
      const there = new Set(doors.map(({ hostId }) => hostId))
      for (const [hostId, link] of links) {
        if (there.has(hostId) && clock.monotonicMs() - link.usedMs < KEPT_MS) continue
        drop(link)
        links.delete(hostId)
      }
      for (const door of doors) {
        const link = links.get(door.hostId)
        if (!link?.isAway || link.opening > 0) continue
        link.opening += 1
        void openTo(door).then((socket) => {
          link.opening -= 1
          if (!socket) return
          log.info({ host: door.name }, 'gateway of another host is back')
          link.isAway = false
          keep(link, socket)
        })
      }
    },
    close() {
      isClosed = true
      for (const socket of open) socket.destroy()
    },
  }
}

/** Nothing of the visit is read here: what follows the byte stays where it is. */
export function askOn(socket: Socket, line: Handover): Promise<Answer> {
  if (socket.destroyed) return Promise.resolve('closed')
  return new Promise((resolve) => {
    const settle = (answer: Answer) => {
      clearTimeout(late)
      socket.off('readable', look)
      socket.off('close', end)
      if (answer === 'closed' || answer === 'late') socket.destroy()
      resolve(answer)
    }
    const look = () => {
      const byte = socket.read(1) as Buffer | null
      if (byte !== null) settle(byte[0] === answers.yes ? 'yes' : 'no')
    }
    const end = () => settle('closed')
    const late = setTimeout(() => settle('late'), ANSWER_WITHIN_MS)
    socket.on('readable', look)
    socket.once('close', end)
    socket.write(`${JSON.stringify(line)}\n`)
  })
}
