// Checks what a credential and its team's plan allow (spec 2.8, 5.7). Pure: throws or returns.

import { forbidden, policyViolation, quotaExceeded } from '../../contract/errors.ts'
import { builtInRegistry } from '../../contract/image-reference.ts'
import type { Policy, Size } from '../../contract/policy.ts'
import type { EgressRules } from '../../lib/egress/rules.ts'
import { shortestWindow, sleepWindowMs } from '../../lib/duration.ts'
import { checkEgress } from './egress.ts'
import { checkSecrets } from './secrets.ts'

export type EffectivePolicy = {
  policy: Policy
  plan: 'hobby' | 'pro' | 'team'
  /** The longest idle window of this installation (BERTH_SLEEP_MAX). */
  sleepMax: string
  /** The most that units of the team may reach; null where that is not bounded, or was not read yet. */
  teamEgress: EgressRules | null
}

/** The default idle window on a plan without `never`. */
const FINITE_DEFAULT = '30m'

/** Spec 8: at most five digits. */
const LONGEST_FINITE = '99999d'

export function checkSize({ policy }: EffectivePolicy, size: Size): void {
  if (policy.allowedSizes.includes(size)) return
  throw policyViolation(
    `This credential may not use the size ${size}; it may use ${list(policy.allowedSizes)}.`,
    { field: 'size', asked: size, allowed: policy.allowedSizes },
  )
}

/** `registry` is that of the canonical reference, from which the image is pulled. */
export function checkRegistry({ policy }: EffectivePolicy, registry: string): void {
  if (registry === builtInRegistry || policy.allowedRegistries.includes(registry)) return
  throw policyViolation(
    `This credential may not use images of ${registry}; it may use ${list(policy.allowedRegistries)}, and ${builtInRegistry}.`,
    { field: 'registry', asked: registry, allowed: policy.allowedRegistries },
  )
}

export function checkSleep({ policy, plan, sleepMax }: EffectivePolicy, sleep: string): void {
  if (sleep === 'never' && plan === 'hobby') {
    throw forbidden(
      'A unit that never sleeps needs the Pro plan or above. Send a window such as "30m"; for an existing unit use POST /v1/units/{id}/sleep.',
    )
  }
  const allowed = shortestWindow(policy.maxSleep, sleepMax)
  if (sleepWindowMs(sleep) <= sleepWindowMs(allowed)) return
  throw policyViolation(
    `The longest sleep allowed here is "${allowed}", and "${sleep}" is longer. Send a shorter one; for an existing unit use POST /v1/units/{id}/sleep.`,
    { field: 'sleep', asked: sleep, allowed },
  )
}

/** Throws unless containers may run in units of the credential. */
function checkNested({ policy }: EffectivePolicy): void {
  if (policy.allowNested) return
  throw policyViolation(
    'This credential may not make units in which containers run. Leave "nested" out, or ask the team to set `allowNested` in its policy.',
    { field: 'allowNested', asked: true, allowed: false },
  )
}

type CheckedUnit = {
  size: Size
  registry: string
  sleep: string
  egress: EgressRules
  /** Names of the team's secrets that it binds. */
  teamSecrets: string[]
  nested: boolean
}

/** Checks what every unit must meet that runs for a credential: created, copied, started or woken. */
export function checkUnit(
  bounds: EffectivePolicy,
  { size, registry, sleep, egress, teamSecrets, nested }: CheckedUnit,
): void {
  checkSize(bounds, size)
  checkRegistry(bounds, registry)
  checkSleep(bounds, sleep)
  checkEgress(bounds, egress)
  checkSecrets(bounds, teamSecrets)
  if (nested) checkNested(bounds)
}

/** The default idle window of this installation, shortened to the limits. */
export function defaultSleep({ policy, plan, sleepMax }: EffectivePolicy, sleepDefault: string): string {
  const window = shortestWindow(sleepDefault, policy.maxSleep, sleepMax)
  return window === 'never' && plan === 'hobby' ? FINITE_DEFAULT : window
}

/** The longest window that `checkSleep` allows without a credential's policy. */
export function longestSleep({ plan, sleepMax }: Pick<EffectivePolicy, 'plan' | 'sleepMax'>): string {
  return sleepMax === 'never' && plan === 'hobby' ? LONGEST_FINITE : sleepMax
}

/** Throws unless this many more units may run. Call it with the team locked. */
export function checkConcurrency(policy: Policy, live: number, more = 1): void {
  const max = policy.maxConcurrentUnits
  if (more === 0 || live + more <= max) return
  const over = live + more - max
  throw quotaExceeded(
    `This credential may run ${max} ${max === 1 ? 'unit' : 'units'} at once and runs ${live}; stop or destroy ${over === 1 ? 'one' : over} first.`,
    { field: 'concurrency', live, max, ...(more === 1 ? {} : { asked: more }) },
  )
}

function list(values: readonly string[]): string {
  return values.length === 0 ? 'none' : values.join(', ')
}
