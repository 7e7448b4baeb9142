// Two wishes of this interface that a unit has no field for are labels of the unit. Clients of this interface do not see
// them, and cannot set labels of these names.

import { validation } from '../../../contract/errors.ts'

const PREFIX = 'berth.sandbox.'
const AUTO_RESUME = `${PREFIX}auto-resume`
const PUBLIC_TRAFFIC = `${PREFIX}public-traffic`

/** `autoResume`: a visit wakes it when it is paused. `publicTraffic`: its ports can be visited without a token. */
export type OwnLabels = { autoResume: boolean; publicTraffic: boolean }

export function isOwnLabel(name: string): boolean {
  return name.startsWith(PREFIX)
}

export function ownLabels(metadata: Record<string, string>): OwnLabels {
  return {
    autoResume: metadata[AUTO_RESUME] === 'true',
    publicTraffic: metadata[PUBLIC_TRAFFIC] !== 'false',
  }
}

/** The labels of a new sandbox: those that its client gives, and these. */
export function withOwnLabels(
  metadata: Record<string, string>,
  { autoResume, publicTraffic }: OwnLabels,
): Record<string, string> {
  const taken = Object.keys(metadata).find(isOwnLabel)
  if (taken !== undefined)
    throw validation([{ path: `metadata.${taken}`, message: `a name must not begin with ${PREFIX}` }])
  return {
    ...metadata,
    ...(autoResume ? { [AUTO_RESUME]: 'true' } : {}),
    ...(publicTraffic ? {} : { [PUBLIC_TRAFFIC]: 'false' }),
  }
}
