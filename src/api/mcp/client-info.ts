// Who calls, as the client says it. The newest revision says it with every request, the older ones once: there it travels on in
// the name of the session, so that nothing is kept here and every audit row has it.

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

/** What a message says of its sender; null where it says nothing. */
export function clientInfoOf(message: unknown): ClientInfo | null {
  const enveloped = envelopeSchema.safeParse(message)
  if (enveloped.success) return tidy(enveloped.data.params._meta['io.modelcontextprotocol/clientInfo'])
  const initialize = initializeSchema.safeParse(message)
  return initialize.success ? tidy(initialize.data.params.clientInfo) : null
}

/** Random, and unlike any other; what else is in it is the client's own word. */
export function newSessionId(info: ClientInfo | null): string {
  const random = randomBytes(16).toString('base64url')
  return info === null
    ? random
    : `${random}.${Buffer.from(`${info.name}/${info.version}`).toString('base64url')}`
}

/** Null where it has none, or is none of ours. */
export function clientInfoOfSession(sessionId: string | null): ClientInfo | null {
  const said = /^[\w-]{22}\.([\w-]{1,300})$/.exec(sessionId ?? '')?.[1]
  if (said === undefined) return null
  const [name = '', ...version] = Buffer.from(said, 'base64url').toString('latin1').split('/')
  return tidy({ name, version: version.join('/') })
}

/** The agent that stands in the log: one that is known by its name there, any other by what it calls itself. */
export function agentBehind(info: ClientInfo): { agentName: string; agentVersion: string | null } {
  const known = agentOf(`${info.name}/${info.version}`) ?? agentOf(info.name)
  return { agentName: known?.name ?? info.name, agentVersion: info.version === '' ? null : info.version }
}

/** As products are written in a User-Agent, so that a name breaks no line and no list. */
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
