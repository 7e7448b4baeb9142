// The client's own name and version. The newest protocol revision sends them with every request, older ones once: for
// those they are stored in the session id, so that the service keeps nothing and every audit row has them.

import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { agentOf } from '../../contract/known-agents.ts'

export type ClientInfo = { name: string; version: string }

const LENGTH = 80

const infoSchema = z.object({ name: z.string().max(1000), version: z.string().max(1000).catch('') })
const initializeSchema = z.object({ params: z.object({ clientInfo: infoSchema }) })
const envelopeSchema = z.object({
  params: z.object({ _meta: z.object({ 'io.modelcontextprotocol/clientInfo': infoSchema }) }),
})

/** Returns the client that a message names; null if it names none. */
export function clientInfoOf(message: unknown): ClientInfo | null {
  const enveloped = envelopeSchema.safeParse(message)
  if (enveloped.success) return tidy(enveloped.data.params._meta['io.modelcontextprotocol/clientInfo'])
  const initialize = initializeSchema.safeParse(message)
  return initialize.success ? tidy(initialize.data.params.clientInfo) : null
}

/** Returns a random, unique session id that also contains the client's own name. */
export function newSessionId(info: ClientInfo | null): string {
  const random = randomBytes(16).toString('base64url')
  return info === null
    ? random
    : `${random}.${Buffer.from(`${info.name}/${info.version}`).toString('base64url')}`
}

/** Returns null if the id contains no client, or is not one this service made. */
export function clientInfoOfSession(sessionId: string | null): ClientInfo | null {
  const said = /^[\w-]{22}\.([\w-]{1,300})$/.exec(sessionId ?? '')?.[1]
  if (said === undefined) return null
  const [name = '', ...version] = Buffer.from(said, 'base64url').toString('latin1').split('/')
  return tidy({ name, version: version.join('/') })
}

/** Returns the agent to log: its known name, else what the client calls itself. */
export function agentBehind(info: ClientInfo): { agentName: string; agentVersion: string | null } {
  const known = agentOf(`${info.name}/${info.version}`) ?? agentOf(info.name)
  return { agentName: known?.name ?? info.name, agentVersion: info.version === '' ? null : info.version }
}

/** Formats the name like a product in a User-Agent, so that it cannot break a line or a list. */
function tidy({ name, version }: ClientInfo): ClientInfo | null {
  const slug = token(name.toLowerCase())
  return slug === '' ? null : { name: slug, version: token(version) }
}

function token(text: string): string {
  return text
    .slice(0, 10 * LENGTH)
    .replace(/[^\w!#$%&'*+.^`|~-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, LENGTH)
}
