// How the ports of a sandbox are visited: by whom, under which host, and whether a visit resumes it.

import type { Unit } from '../../../contract/unit.ts'
import { type PortVisits, setPortVisits, visitTokenOf } from '../../../domain/units/port-rules.ts'
import type { App } from '../../../app.ts'
import { validation } from '../../../contract/errors.ts'
import { ownRoute } from '../envd/own-route.ts'
import { type ControlCall, perform } from './call.ts'
import type { Network } from './network.ts'
import { timeToLiveOf } from './time.ts'

const NO_RULES: PortVisits = { isPrivate: false, host: null, wakesFor: null }
/** What a sandbox that a visit resumed has at least. */
const RESUMED_S = 300
const HOST = /^[A-Za-z0-9.-]{1,253}(?::(?:\d{1,5}|\$\{PORT\}))?$/

/** Throws `validation` for a host that can be none. */
export function visitsOf(
  { allowPublicTraffic, maskRequestHost }: Pick<Network, 'allowPublicTraffic' | 'maskRequestHost'>,
  resumes: { timeout: number } | null,
): PortVisits {
  const host = maskRequestHost ?? null
  if (host !== null && !HOST.test(host))
    throw validation([
      { path: 'network.maskRequestHost', message: 'must be a host, such as localhost:${PORT}' },
    ])
  const wakesFor = resumes === null ? null : timeToLiveOf(Math.max(RESUMED_S, resumes.timeout))
  return { isPrivate: allowPublicTraffic === false, host, wakesFor }
}

/** Of a sandbox that was just made. */
export async function applyVisits(call: ControlCall, { id }: Unit, visits: PortVisits): Promise<void> {
  if (Object.entries(NO_RULES).every(([name, value]) => visits[name as keyof PortVisits] === value)) return
  const { app, sender } = call
  const route = ownRoute({ action: 'unit.change', kind: 'change', record: { ports: visits } }, async () => {
    await setPortVisits(app, sender.caller, id, visits)
  })
  await perform(call, { route, input: { params: { id } } })
}

/** Null where anyone may visit. */
export function trafficTokenOf(app: App, { id }: Unit, { isPrivate }: PortVisits): string | null {
  return isPrivate ? visitTokenOf(app, id) : null
}
