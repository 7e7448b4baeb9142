// Who may use a route at all. Decided before anything is woken, logged or cached: a wrong link must not be able
// to wake, and bill, a unit (reliability S20). Pure.

import { timingSafeEqual } from 'node:crypto'
import { hashEndpointSecret } from '../../contract/endpoint-label.ts'
import type { Route } from './route.ts'

/**
 * Whether the secret in the label that was asked for is the route's. A public route is asked for without one: its
 * label with something behind it is another address, at which there is nothing.
 */
export function isAuthorized(route: Pick<Route, 'secretHash'>, secret: string | null): boolean {
  if (route.secretHash === null || secret === null) return route.secretHash === null && secret === null
  const presented = hashEndpointSecret(secret)
  return presented.length === route.secretHash.length && timingSafeEqual(presented, route.secretHash)
}
