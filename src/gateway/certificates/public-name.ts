// Which names have certificates of their own: those of public endpoints.

import { parseEndpointLabel } from '../../contract/endpoint-label.ts'
import { readHost } from '../routing/requested-host.ts'
import type { Routes } from '../route.ts'

/** Returns the endpoint name of a server name; null if the name contains a secret. */
export function publicName(serverName: string, domain: string): string | null {
  const asked = readHost(serverName, domain)
  const label = asked.kind === 'label' ? parseEndpointLabel(asked.label) : null
  return label === null || label.secret !== null ? null : label.name
}

/** Whether the name is a public endpoint's. Null if it is unknown. */
export async function isPublicEndpoint(routes: Routes, name: string): Promise<boolean | null> {
  try {
    const route = await routes.find(name)
    return route !== null && route.secretHash === null
  } catch {
    return null
  }
}
