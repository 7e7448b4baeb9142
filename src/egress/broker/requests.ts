// Decides one request to the host of a secret, and sends its head on with the values in it.

import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'
import { canonicalHostName } from '../../lib/egress/entry.ts'
import { isAllowed, notAllowed } from '../decide.ts'
import type { Door } from '../door.ts'
import { mayBeUsedFor, type RequestTarget } from '../../lib/egress/secret-requests.ts'
import { noteBrokered, noteMisused } from '../egress-log.ts'
import { misdirected, notForSecret, type Refused } from '../refused.ts'
import { pairs, passedHeaders } from '../request-headers.ts'
import { isUpgrade } from '../upgrade.ts'
import { type Mask, maskBy } from './mask.ts'
import { type Header, putSecrets } from './put-secrets.ts'
import type { Place } from './place.ts'
import type { Session } from './session.ts'

/** `mask`: for what is answered; null if it passes as it is. `note`: to be called when the head is sent. */
type Put = { mask: Mask | null; note: () => void }

const PORT = 443

/** Returns the request, whose body is yet to be sent, or why there is none. */
export function beginRequest(
  door: Door,
  session: Session,
  request: IncomingMessage,
): { outgoing: ClientRequest; mask: Mask | null } | Refused {
  const { host } = session
  if (!isFor(host, request)) return misdirected(host)
  const { method = 'GET', url: target = '/' } = request
  const put = putInto(door, session, { method, target }, passedHeaders(request))
  if ('status' in put) return put
  const outgoing = send(session, request, put.headers)
  outgoing.once('socket', put.note)
  return { outgoing, mask: put.mask }
}

/** Returns the headers of a request with the values in them, or why it is not sent. */
export function putInto(
  door: Door,
  place: Place,
  asked: Pick<RequestTarget, 'method' | 'target'>,
  headers: Header[],
): ({ headers: Header[] } & Put) | Refused {
  const { machine, host } = place
  const prepared = place.secrets()
  // The rules as they are now: values change, and secrets are taken away.
  if (!isAllowed(door.link, machine, host, PORT) || prepared.secrets.size === 0)
    return notAllowed('not_listed', host, PORT)
  const put = putSecrets(headers, prepared)
  if (put.kind === 'too_large')
    return { status: 431, code: 'egress_refused', message: 'The headers of this request are too large.' }
  const used = put.used.flatMap((placeholder) => prepared.secrets.get(placeholder) ?? [])
  const whole = { ...asked, headers: headers.map(([name]) => name.toLowerCase()) }
  const misused = used.filter((secret) => !mayBeUsedFor(secret, whole)).map(({ name }) => name)
  const [first] = misused
  if (first !== undefined) {
    noteMisused(door, place, misused)
    return notForSecret(first)
  }
  for (const placeholder of put.used) place.used.add(placeholder)
  const names = used.map(({ name }) => name)
  const mask = maskBy(prepared.index, put.sent)
  const note = () => noteBrokered(door, place, names)
  return { headers: put.used.length > 0 ? put.headers.map(uncompressed) : put.headers, mask, note }
}

/** A value could not be found in a compressed answer. */
function uncompressed([name, value]: Header): Header {
  return [name, name.toLowerCase() === 'accept-encoding' ? 'identity' : value]
}

function send(
  { agent, host }: Session,
  request: IncomingMessage,
  headers: [string, string][],
): ClientRequest {
  const outgoing = httpRequest({
    agent,
    host,
    port: PORT,
    method: request.method ?? 'GET',
    path: request.url ?? '/',
    setHost: false,
  })
  for (const [name, value] of headers) outgoing.appendHeader(name, value)
  const { upgrade = '', 'transfer-encoding': encoding } = request.headers
  if (isUpgrade(request)) outgoing.setHeader('connection', 'upgrade').setHeader('upgrade', upgrade)
  if (encoding !== undefined) outgoing.setHeader('transfer-encoding', 'chunked')
  return outgoing
}

/** The name of the ClientHello, of the certificate and of the request are the same, or the request is not passed on. */
function isFor(host: string, { rawHeaders, url = '' }: IncomingMessage): boolean {
  const given = pairs(rawHeaders).filter(([name]) => name.toLowerCase() === 'host')
  const [, name = ''] = given[0] ?? []
  const isPath = url.startsWith('/') || url === '*'
  return given.length === 1 && isPath && canonicalHostName(name.replace(/:443$/, '')) === host
}
