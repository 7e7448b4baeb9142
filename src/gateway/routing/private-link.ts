// Decides who may use a route. Checked before a unit is woken or anything is logged or cached: a wrong link must not
// be able to wake, and bill, a unit (reliability S20). Pure.

import { timingSafeEqual } from 'node:crypto'
import { hashEndpointSecret } from '../../contract/endpoint-label.ts'
import type { Route } from '../route.ts'

/**
 * Whether the secret in the requested label is the route's. A public route has no secret: its label with a secret is
 * another address, which does not exist.
 */
export function isAuthorized(route: Pick<Route, 'secretHash'>, secret: string | null): boolean {
  if (route.secretHash === null || secret === null) return route.secretHash === null && secret === null
  const presented = hashEndpointSecret(secret)
  return presented.length === route.secretHash.length && timingSafeEqual(presented, route.secretHash)
}
