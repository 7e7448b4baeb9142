// One environment of a vendor, served until the signal aborts: what the CLI's command and the server's role both run.

import { randomUUID } from 'node:crypto'
import type { Berth } from '../../sdk/src/index.ts'
import { checkPrepared } from './prepared.ts'
import type { OpenQueue, QueueOptions, Tell } from './queue.ts'
import { refusalOf, type ServeOptions, serveQueue } from './serve.ts'
import { sessionUnits, type UnitPlan } from './session-units.ts'

export type EnvironmentOptions = Omit<QueueOptions, 'workerId'> & {
  /** The driver of its vendor. */
  open: OpenQueue
  /** Of this controller, unique. Default: random. */
  workerId?: string | undefined
  /** A client whose calls begin their User-Agent so. */
  connect: (userAgent: string) => Berth
  version: string
  plan: UnitPlan
  atOnce: number
  tell: Tell
} & Pick<ServeOptions, 'signal' | 'leaving' | 'underWay' | 'pauses'>

export const atOnceLimits = { default: 8, most: 200 }
export const defaultPlan: UnitPlan = {
  image: 'berth.local/agent:1',
  size: undefined,
  egress: { mode: 'none', siblings: 'none' },
  sleep: '1m',
  timeToLive: '24h',
  stack: 'agents',
  copyOf: null,
}

/** Clients of sessions that are kept for their next call. */
const KEPT = 1000

/** Throws `QueueRefused` for what no repetition changes. */
export async function serveEnvironment(options: EnvironmentOptions): Promise<void> {
  const { open, environmentId, plan, atOnce, tell, signal, leaving, underWay, pauses } = options
  const { workerId = `berth-${randomUUID()}` } = options
  const queue = await open({ ...options, workerId })
  const { vendor } = queue
  const berthFor = clientsOf(vendor, options)
  // Before the queue is asked for anything, what refuses us is known.
  await berthFor(null)
    .units.summary({ signal })
    .catch((error: unknown) => {
      throw refusalOf(error) ?? error
    })
  await checkPrepared(berthFor(null), plan, signal)
  const units = sessionUnits({ berthFor, vendor, environment: environmentId, plan, tell, signal })
  tell({ kind: 'said', session: null, sentence: `waiting for sessions of ${environmentId}` })
  await serveQueue({ queue, units, atOnce, tell, signal, leaving, underWay, pauses })
}

/** A client for each session, whose calls have it in their User-Agent, and so in the audit log. */
function clientsOf(
  vendor: string,
  { connect, version }: EnvironmentOptions,
): (session: string | null) => Berth {
  const clients = new Map<string, Berth>()
  return (session) => {
    const name = session ?? 'controller'
    const client = clients.get(name) ?? connect(`berth-agents/${version} ${vendor}/${name}`)
    clients.delete(name)
    clients.set(name, client)
    for (const [oldest] of clients) if (clients.size > KEPT) clients.delete(oldest)
    return client
  }
}
