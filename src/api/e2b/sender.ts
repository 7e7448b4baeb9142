// Who sends a request to the door: by a key for the control plane, by the token of a sandbox for what is inside of it.

import type { IncomingMessage } from 'node:http'
import type { Presented } from '../../domain/credentials/authenticate.ts'
import { cleanLine } from '../../contract/fields.ts'
import { presentedBy } from '../http/request.ts'
import type { OperationRequest } from '../operation.ts'
import { keyOfSpelling } from '../../lib/key-spelling.ts'

/** Characters of a client's own name and version. */
const NAME_LENGTH = 64

type Asked = Pick<IncomingMessage, 'headers'>

/** The key in `X-API-KEY` or, as in newer clients, as a bearer. */
export function presentedKey({ headers }: Asked, publicUrl: string): Presented {
  const sent = headers['x-api-key']
  const key = typeof sent === 'string' && sent !== '' ? sent : bearerIn({ headers })
  const authorization = key === undefined ? null : `Bearer ${keyOfSpelling(key)}`
  return { ...presentedBy(headers, publicUrl), authorization, sessionToken: null, team: null }
}

export function bearerIn({ headers }: Asked): string | undefined {
  return /^bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}

/** The token of one unit: what its owner may do elsewhere is nothing to it. */
export function presentedToken(
  { headers }: Asked,
  { publicUrl, unitId, token }: { publicUrl: string; unitId: string; token: string },
): Presented {
  const presented = presentedBy(headers, publicUrl)
  return { ...presented, authorization: null, sessionToken: null, team: null, ofUnit: { token, unitId } }
}

/** As the audit log shows it: the name and version of the client's library. */
export function clientOf({ headers }: Asked): NonNullable<OperationRequest['client']> {
  const [, name, version] = /^([A-Za-z0-9._-]+)\/([^\s]+)/.exec(headers['user-agent'] ?? '') ?? []
  if (name === undefined || version === undefined) return { via: 'e2b' }
  return {
    via: 'e2b',
    agentName: cleanLine(name, NAME_LENGTH),
    agentVersion: cleanLine(version, NAME_LENGTH),
  }
}
