// How the ports of a unit are visited by their own names (contract/port-host.ts).

import { createHash } from 'node:crypto'
import type { App } from '../../app.ts'
import type { PortRules } from '../../contract/port-host.ts'
import { setPortRules } from '../../store/unit-ends.ts'
import type { Caller } from '../credentials/caller.ts'
import { getRecord } from './get.ts'

/** `isPrivate`: visitors show the token of `visitTokenOf`. */
export type PortVisits = { isPrivate: boolean; host: string | null; wakesFor: string | null }

/** The token for the ports of a unit. It is not stored, and worth nothing elsewhere. */
export function visitTokenOf({ secretKey }: Pick<App, 'secretKey'>, unitId: string): string {
  return secretKey.mac(['token for visits of ports', unitId]).toString('hex')
}

/** Throws `not_found` for a unit of another team. */
export async function setPortVisits(app: App, caller: Caller, id: string, visits: PortVisits): Promise<void> {
  const { teamId } = await getRecord(app, caller, id)
  const { isPrivate, host, wakesFor } = visits
  const secretHash = isPrivate ? createHash('sha256').update(visitTokenOf(app, id)).digest('base64') : null
  const rules: PortRules = { secretHash, host, wakesFor }
  await setPortRules(app.db, { teamId, id }, isPrivate || host !== null || wakesFor !== null ? rules : null)
}

/** Throws `not_found` for a unit of another team. */
export async function getPortVisits(app: App, caller: Caller, id: string): Promise<PortVisits> {
  const { portRules } = await getRecord(app, caller, id)
  const { secretHash = null, host = null, wakesFor = null } = portRules ?? {}
  return { isPrivate: secretHash !== null, host, wakesFor }
}
