// How one host's gateway hands a visit over to the gateway of the host that has the unit (decisions/gateway.md): over TLS
// between members of the fleet, one line of JSON says how the visitor came, one byte answers, and from then on the
// connection is the visitor's, without the TLS that ended where they came to.

import { z } from 'zod'

/** What a TLS connection carries, as it is named in ALPN. */
export const HANDOVER_PROTOCOL = 'berth-visit'

/** What clients agree on by ALPN, by the gateway's preference. */
export const applications = ['postgresql', 'h2', 'http/1.1'] as const

/** The visitor's address: it is told to units, so it must be one. */
const address = z.string().regex(/^[0-9a-f.:]{2,45}$/)
/** As the client sent it in TLS. */
const serverName = z.string().max(255).nullable()
/** The endpoint that the port belongs to at which the visitor came in. */
const owner = z
  .string()
  .regex(/^[a-z0-9-]{1,63}$/)
  .nullable()

export const handoverSchema = z.discriminatedUnion('kind', [
  /** From the port for everything over TLS, after the handshake. */
  z.strictObject({
    kind: z.literal('tls'),
    address,
    serverName,
    owner,
    /** Agreed on by ALPN. */
    application: z.enum(applications).nullable(),
    isPostgres: z.boolean(),
  }),
  /** From the port for MySQL, after the greeting with this session id and the handshake: the client's login follows. */
  z.strictObject({
    kind: z.literal('mysql'),
    address,
    serverName,
    owner,
    sessionId: z.int().min(0).max(0xffff_ffff),
  }),
  /** Single requests in HTTP/1.1, of a connection whose requests are for several units. */
  z.strictObject({
    kind: z.literal('requests'),
    address,
    isSecure: z.boolean(),
    /** Of a caller that the server has let in to this port of a unit. */
    portName: z
      .string()
      .regex(/^port-[1-9][0-9]{0,4}-[0-9a-f]{32}$/)
      .optional(),
  }),
  /** A whole request to cancel, in base64, which names no unit. Whatever the answer, another line may follow. */
  z.strictObject({ kind: z.literal('cancel'), request: z.base64().max(1024) }),
])

export type Handover = z.infer<typeof handoverSchema>
export type HandedVisit = Exclude<Handover, { kind: 'cancel' }>

export const MAX_LINE_BYTES = 2048

/** The byte that answers a line. */
export const answers = { yes: 0x2b, no: 0x2d } as const
