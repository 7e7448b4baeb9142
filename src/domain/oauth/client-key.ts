import { createHash } from 'node:crypto'
import type { OauthClient } from '../../store/oauth-clients.ts'
import { withoutPort } from './redirects.ts'

/**
 * Tells which programs count as one client of a person: that of a document is its URL; many others register anew with
 * every sign-in, and are the same by name and redirects. Who is the same has one agent, and takes one seat.
 */
export function clientKeyOf({ id, kind, name, redirectUris }: OauthClient): string {
  if (kind === 'document') return id
  const described = JSON.stringify([name, redirectUris.map(withoutPort).toSorted()])
  return `registered ${createHash('sha256').update(described).digest('base64url')}`
}
