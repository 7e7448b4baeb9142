// The protocol between gateway and server: a gateway may ask to wake units, and record that they are used. One on a
// host without a database also asks where names lead. A gateway parses untrusted bytes, so it has no access to the
// engine's socket and no right to change the database; an attacker who takes it over can only keep units awake, and open ports
// of sandboxes' loopbacks, on another host only those of that host.
//
// It is JSON lines (json-lines-rpc.ts), because a visit that wakes its unit waits for the round trip: over a unix socket,
// and from other hosts over TLS (fleet-tls.ts).

import { z } from 'zod'
import { protocols } from '../../contract/endpoint.ts'
import { gatewayFactsSchema } from '../../contract/gateway-facts.ts'
import { stoppedReasons, unitStates } from '../../contract/states.ts'
import { VISIT_WAIT_MS, visitedSchema } from '../../contract/visit.ts'
import { MAX_GATEWAY_WORKERS } from '../../lib/gateway-workers.ts'
import { SECOND } from '../../lib/clock.ts'
import { answerLine, eventLine, failureLine } from '../../lib/ipc/call-lines.ts'
import type { AnswersOf, RequestsOf } from '../../lib/ipc/operation-types.ts'
import { isHostName } from '../../lib/fleet-identity.ts'
import { isId } from '../../lib/ids.ts'

/** What a TLS connection carries, as it is named in ALPN. */
export const LINK_PROTOCOL = 'berth-gateway'

const unitId = z.string().refine((text) => isId('unit', text), 'is not the id of a unit')
/** As many as there can be visits (session-limits.ts). */
export const MAX_IDS = 16_384
const endpointId = z.string().refine((text) => isId('endpoint', text), 'is not the id of an endpoint')
/** More than a unit can have. */
const MAX_ENDPOINTS = 8
const unitIds = z.array(unitId).max(MAX_IDS)

const hostId = z.string().refine((text) => isId('host', text), 'is not the id of a host')
/** As many as can join. */
const MAX_HOSTS = 256
/** Of a gateway that hands visits over to others: about units of all hosts, which older servers do not know. */
const everywhere = z.literal(true).optional()

/** The name of an endpoint; a label of DNS. */
const endpointName = z.string().regex(/^[a-z0-9-]{1,63}$/)
/** As many as are looked up together (endpoint-routes.ts). */
const MAX_NAMES = 500
/** So that the answer fits in a line. */
export const MAX_PORTS = 8192
const port = z.int().min(1).max(65_535)

const endpointRoute = z.strictObject({
  endpointId,
  name: endpointName,
  unitId,
  protocol: z.enum(protocols),
  /** In base64. */
  secretHash: z.base64().max(64).nullable(),
  port,
  address: z.ipv4().nullable(),
  state: z.enum(unitStates),
  stoppedReason: z.enum(stoppedReasons).nullable(),
  frozen: z.boolean(),
  generation: z.int(),
  /** Only in answers about all hosts. */
  hostId: hostId.optional(),
  portRules: z
    .strictObject({
      secretHash: z.base64().max(64).nullable(),
      host: z.string().max(300).nullable(),
      wakesFor: z.string().max(16).nullable(),
    })
    .optional(),
})

export const gatewayOperations = {
  /** Records a use and wakes the unit. Answers that it stays awake for at least a minute, or why not. */
  use: {
    request: z.strictObject({ unitId }),
    answer: visitedSchema,
    deadlineMs: VISIT_WAIT_MS + 5 * SECOND,
  },
  /** Records that these units are in use. Answers which of them run. */
  used: {
    request: z.strictObject({ unitIds }),
    answer: z.strictObject({ awake: unitIds }),
    deadlineMs: 10 * SECOND,
  },
  /**
   * All units with long visits in progress, replacing the previous list, and their endpoints if known. Each of several
   * gateways on one host has a list, and says its number.
   */
  visits: {
    request: z.strictObject({
      worker: z
        .int()
        .min(1)
        .max(MAX_GATEWAY_WORKERS - 1)
        .optional(),
      unitIds,
      endpoints: z.record(unitId, z.array(endpointId).max(MAX_ENDPOINTS)).optional(),
    }),
    answer: z.strictObject({}),
    deadlineMs: 10 * SECOND,
  },
  /** What the gateway of another host says of itself, on each connection. */
  hello: {
    request: gatewayFactsSchema,
    answer: z.strictObject({}),
    deadlineMs: 10 * SECOND,
  },
  /** The live endpoints with these names, of units on the gateway's host. */
  routes: {
    request: z.strictObject({ names: z.array(endpointName).max(MAX_NAMES), everywhere }),
    answer: z.strictObject({ routes: z.array(endpointRoute).max(MAX_NAMES) }),
    deadlineMs: 5 * SECOND,
  },
  /** The ports of the range that belong to endpoints of units on the gateway's host. */
  ports: {
    request: z
      .strictObject({ first: port, last: port, everywhere })
      .refine(({ first, last }) => last - first < MAX_PORTS, 'are too many ports'),
    answer: z.strictObject({
      ports: z
        .array(z.strictObject({ port, name: endpointName, protocol: z.enum(protocols) }))
        .max(MAX_PORTS),
    }),
    deadlineMs: 5 * SECOND,
  },
  /**
   * The hosts whose gateways may hand visits over, and where those take them: at the machine by which the server's is reached
   * without an address, and nowhere without a port.
   */
  doors: {
    request: z.strictObject({}),
    answer: z.strictObject({
      own: hostId,
      hosts: z
        .array(
          z.strictObject({
            id: hostId,
            name: z.string().refine(isHostName),
            /** Certificates from before are of an earlier host; in milliseconds. */
            since: z.number(),
            address: z.string().max(253).nullable(),
            port: port.nullable(),
          }),
        )
        .max(MAX_HOSTS),
    }),
    deadlineMs: 5 * SECOND,
  },
  /**
   * A port at the unit's address that leads to one of its loopback at which something listens; null if nothing does, or it is
   * none of the units whose ports have names (contract/port-host.ts).
   */
  loopback: {
    request: z.strictObject({ unitId, port }),
    answer: z.strictObject({ port: port.nullable() }),
    deadlineMs: 15 * SECOND,
  },
  /** The address that a name has for the unit which asks, both on the gateway's host. */
  address: {
    request: z.strictObject({ askerAddress: z.ipv4(), name: z.string().max(253) }),
    answer: z.strictObject({ address: z.ipv4().nullable() }),
    deadlineMs: 2 * SECOND,
  },
} as const

export type GatewayOperation = keyof typeof gatewayOperations
export type GatewayRequest = RequestsOf<typeof gatewayOperations>
export type GatewayAnswer = AnswersOf<typeof gatewayOperations>

/** The longest line: somewhat more than the largest number of ids. */
export const MAX_BYTES = 1024 * 1024

/** What the server cannot answer now, as while the database is away. */
const failure = failureLine.extend({
  error: failureLine.shape.error.extend({ kind: z.literal('unavailable') }),
})
const runEnded = eventLine.extend({ event: z.literal('runEnded') })
export type Failure = z.infer<typeof failure>
export type RunEnded = z.infer<typeof runEnded>

/**
 * A line of the server: the answer or failure of a call, or the event that a unit has stopped running. The first line is
 * empty: after it no event is missed. Later empty lines show that the server is alive.
 */
export const messageSchema = z.union([answerLine, failure, runEnded])
export const KEEP_ALIVE_MS = 3 * SECOND
export const SILENT_FOR_MS = 3 * KEEP_ALIVE_MS
