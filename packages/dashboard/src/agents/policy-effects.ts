// What a change of a policy does to what runs now, before it is saved.

import { money } from '../ui/format.tsx'
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
      effects.push(
        `It has spent ${money(spent)} today. ${live === 0 ? 'It runs nothing more' : 'What it runs is stopped at once, and it runs nothing more'} until 00:00 UTC.`,
      )
    else if (before.dailySpendCapCents <= spent)
      effects.push(
        `Its units that the cap stopped go on: ${money(after.dailySpendCapCents - spent)} are left for today.`,
      )
  }
  if (changed.includes('maxConcurrentUnits') && live !== null && after.maxConcurrentUnits < live)
    effects.push(
      `It runs ${live} units now. None of them is stopped, and it makes and wakes no other one before fewer than ${after.maxConcurrentUnits} run.`,
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
