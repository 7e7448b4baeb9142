// Chance by weight.

import type { Random } from '../simulation/random.ts'

/** Returns one of the kinds, each as often as its weight, a whole number, says. */
export function pickKind<K extends string>(random: Random, weights: Record<K, number>): K {
  const entries = Object.entries(weights) as [K, number][]
  let left = random.below(entries.reduce((sum, [, weight]) => sum + weight, 0))
  for (const [kind, weight] of entries) {
    left -= weight
    if (left < 0) return kind
  }
  throw new Error('there is nothing to choose from')
}
