// What a change of a policy does, in words, before it is saved. What it stops is asked of the service (use-dry-run.ts).

import type { Contract } from '@berth/sdk'
import { euros } from '../../../../src/lib/money.ts'
import type { Use } from './agent-use.ts'
import type { Policy, PolicyField } from './policy-text.ts'

export function effectsOf(
  before: Policy,
  after: Policy,
  changed: readonly PolicyField[],
  use: Use,
): string[] {
  const effects: string[] = []
  const { spentTodayCents: spent, liveUnits: live } = use
  if (changed.includes('dailySpendCapCents') && spent !== null) {
    if (after.dailySpendCapCents <= spent)
      effects.push(`It has spent ${euros(spent)} today, and runs nothing more until 00:00 UTC.`)
    else if (before.dailySpendCapCents <= spent)
      effects.push(
        `Its units that the cap stopped go on: ${euros(after.dailySpendCapCents - spent)} are left for today.`,
      )
  }
  if (changed.includes('maxConcurrentUnits') && live !== null && after.maxConcurrentUnits < live)
    effects.push(
      `It runs ${live} ${live === 1 ? 'unit' : 'units'} now, and makes and wakes no other one${after.maxConcurrentUnits === 0 ? '' : ` before fewer than ${after.maxConcurrentUnits} run`}.`,
    )
  const sizes = before.allowedSizes.filter((size) => !after.allowedSizes.includes(size))
  if (sizes.length > 0)
    effects.push(`Units of the size ${sizes.join(', ')} stay as they are; it makes no new ones of that size.`)
  const registries = before.allowedRegistries.filter((each) => !after.allowedRegistries.includes(each))
  if (registries.length > 0)
    effects.push(
      `Units with images of ${registries.join(', ')} stay as they are; it makes no new ones from there.`,
    )
  if (changed.includes('expiresAt') && after.expiresAt !== null)
    effects.push('From that time on each of its calls is refused.')
  return effects
}

const NAMED = 4

/** Which units the change stops. */
export function stopsText(stops: Contract.AgentDryRun['stops']): string {
  const names = stops.slice(0, NAMED).map(({ name }) => name)
  const others = stops.length - names.length
  if (stops.length === 0) return 'It stops nothing that runs now.'
  const which = others > 0 ? `${names.join(', ')} and ${others} more` : names.join(', ')
  return `It stops at once, with ${stops.length === 1 ? 'its' : 'their'} commands: ${which}. ${stops.length === 1 ? 'Its disk is' : 'Their disks are'} kept.`
}

/** Nothing, where no unit may reach less or loses a secret. */
export function narrowsText(narrows: Contract.AgentDryRun['narrows']): string[] {
  if (narrows.length === 0) return []
  const names = narrows.slice(0, NAMED).map(({ name }) => name)
  const others = narrows.length - names.length
  const which = others > 0 ? `${names.join(', ')} and ${others} more` : names.join(', ')
  return [`These reach less or lose a secret at once, and run on: ${which}.`]
}
