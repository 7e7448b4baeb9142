// The dependencies that every operation receives. main builds them once.

import type { TeamEvent } from './contract/events.ts'
import { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import type { Kysely } from 'kysely'
import type { Config } from './config.ts'
import type { PortCaller, PortHost } from './contract/port-host.ts'
import type { GatewayFacts } from './contract/gateway-facts.ts'
import type { UnitProgress } from './contract/unit.ts'
import { createUnitActivity, type UnitActivity } from './domain/units/activity/unit-activity.ts'
import type { Capabilities, Capacity } from './engine/engine.ts'
import type { Fleet } from './engine/fleet.ts'
import type { RenewalOutcome } from './engine/renewal.ts'
import { type Clock, SECOND } from './lib/clock.ts'
import type { SecretKey } from './lib/crypto.ts'
import type { Failpoints } from './lib/failpoints.ts'
import type { Log } from './lib/log.ts'
import type { DeliverMail } from './integrations/mail-transport.ts'
import type { PaymentProvider } from './integrations/stripe.ts'
import type { Observer } from './lib/observer.ts'
import type { PublicFetch } from './lib/public-fetch.ts'
import { type ConcurrencyLimit, createConcurrencyLimit } from './lib/concurrency/concurrency-limit.ts'
import { keptByKey } from './lib/concurrency/kept-by-key.ts'
import { createKeyedLock, type KeyedLock } from './lib/concurrency/keyed-lock.ts'
import { cachedFor } from './lib/concurrency/ttl-cache.ts'
import { createServiceClock, type ServiceClock } from './lib/service-clock.ts'
import { createSingleFlight, type SingleFlight } from './lib/concurrency/single-flight.ts'
import { createAdmissionQueue, type AdmissionQueue } from './lib/concurrency/admission-queue.ts'
import type { Database } from './store/db.ts'
import type { OauthClient } from './store/oauth-clients.ts'

export type AppParts = {
  config: Config
  db: Kysely<Database>
  fleet: Fleet
  clock: Clock
  log: Log
  /** Encrypts secrets and boot files at rest. */
  secretKey: SecretKey
  failpoints: Failpoints
  observer: Observer
  /** For domain/mail/deliver.ts only; other code posts mails (domain/mail/post.ts). */
  deliverMail: DeliverMail
  /** Null if the service takes no payments. */
  payments: PaymentProvider | null
  /** Reads documents at untrusted URLs (lib/public-fetch.ts). */
  fetchPublic: PublicFetch
  /** A connection for one request in HTTP/1.1 to a port of a unit. Rejects while the gateway is away. Absent in tests. */
  reachPort?: ((asked: PortHost & PortCaller) => Promise<Duplex>) | undefined
  /** Has a host's request for certificates signed. Absent without other hosts. */
  signRenewal?: ((asked: { host: string; request: string }) => Promise<RenewalOutcome>) | undefined
}

export type App = AppParts & {
  /** The time of the service. */
  clock: ServiceClock
  /**
   * Hosts of which the database, the engine or this process has been unavailable since their last heartbeat
   * (domain/time/heartbeat.ts).
   */
  outages: Set<string>
  /** What this process knows of the use of its units. */
  activity: UnitActivity
  /** Emitted for each team in which something has changed, after the commit (domain/transactions/changes.ts). */
  teamEvents: EventEmitter<{ changed: [teamId: string]; told: [teamId: string, event: TeamEvent] }>
  /** By host, as its engine last reported (domain/hosts/capabilities.ts). */
  capabilities: Map<string, Capabilities>
  /** By host of another machine: what its gateway says of itself (domain/endpoints/gateways.ts). */
  gateways: Map<string, GatewayFacts>
  /** Hosts of other machines whose gateway is connected (gateway/server-link/far-server.ts). */
  connectedGateways: Set<string>
  /** How far units are that this process creates (domain/units/lifecycle/creation-progress.ts). */
  creations: Map<string, { teamId: string; progress: UnitProgress }>
  /** Reads of logs in progress, by team (domain/units/logs.ts). */
  logReads: ConcurrencyLimit
  /** Of a host, at most a moment old; null if it does not answer soon. */
  capacityOf: (hostId: string) => () => Promise<Capacity | null>
  /** Cold starts on a host (domain/units/lifecycle/cold-starts.ts). */
  coldStarts: (hostId: string) => AdmissionQueue
  /** Documents of OAuth clients being fetched, by their URL. */
  clientDocuments: SingleFlight<OauthClient>
  /** Taken before a team is locked in the database. */
  teamLocks: KeyedLock
  /** Held while the engine is told what a unit may reach (domain/egress/apply.ts). */
  egressLocks: KeyedLock
}

export function createApp(parts: AppParts): App {
  const clock = createServiceClock(parts.clock)
  const capacityOf = keptByKey((hostId) => createCapacity(parts, hostId))
  return {
    ...parts,
    clock,
    outages: new Set(),
    activity: createUnitActivity({ db: parts.db, clock }),
    teamEvents: new EventEmitter(),
    capabilities: new Map(),
    gateways: new Map(),
    connectedGateways: new Set(),
    creations: new Map(),
    logReads: createConcurrencyLimit(Infinity, LOG_READS),
    capacityOf,
    coldStarts: keptByKey((hostId) => createColdStarts(parts, capacityOf(hostId))),
    clientDocuments: createSingleFlight<OauthClient>(clock),
    teamLocks: createKeyedLock(),
    egressLocks: createKeyedLock(),
  }
}

function createCapacity({ fleet, clock }: AppParts, hostId: string): () => Promise<Capacity | null> {
  const ask = () => fleet.engineOf({ hostId }).capacity()
  return cachedFor({ clock, forMs: SECOND / 5, withinMs: SECOND }, ask)
}

/** The engine runs one at a time for each team. */
const LOG_READS = 8

/**
 * A start costs 40 to 200 ms of CPU, so more than a few at once only slow each other down. The queue is as long as
 * can be admitted in the timeout.
 */
function createColdStarts(
  { config, clock }: AppParts,
  capacity: () => Promise<Capacity | null>,
): AdmissionQueue {
  return createAdmissionQueue({
    clock,
    capacity: async () => {
      const now = await capacity()
      return now && { places: 2 * now.cpus, weight: now.availableMemoryMb - config.memoryReserveMb }
    },
    bounds: { perOwner: 200, inAll: 500 },
    maxWaitMs: 30 * SECOND,
    slowMs: 2 * SECOND,
    releaseDelayMs: SECOND / 4,
  })
}
