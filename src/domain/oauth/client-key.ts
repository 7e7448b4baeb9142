// The identity of a program that connects by OAuth.

import { createHash } from 'node:crypto'
import type { OauthClient } from '../../store/oauth-clients.ts'
import { withoutPort } from './redirects.ts'

/**
 * Decides which programs count as one client of a person. A client with a metadata document is identified by its URL;
 * other programs often register again with every sign-in, and are the same if name and redirects are equal. The same
 * client has one agent and takes one seat.
 */
export function clientKeyOf({ id, kind, name, redirectUris }: OauthClient): string {
  if (kind === 'document') return id
  const described = JSON.stringify([name, redirectUris.map(withoutPort).toSorted()])
  return `registered ${createHash('sha256').update(described).digest('base64url')}`
}
