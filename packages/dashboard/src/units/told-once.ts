// What a create or a fork has told once: generated passwords, which no other answer has. They stay in this page's memory, beside
// the unit or stack that they are of, until the person has kept them; so nobody has to be held on one page.

import type { Contract } from '@berth/sdk'
import { useSyncExternalStore } from 'react'

export type Outputs = Readonly<Record<string, string>>

const kept = new Map<string, Outputs>()
const watchers = new Set<() => void>()

/**
 * The outputs if one of them is a secret, without the addresses of endpoints, which the unit's page shows. `open` names
 * outputs that contain no secret.
 */
export function secretsIn(
  { outputs, units }: { outputs: Outputs; units: readonly Pick<Contract.Unit, 'endpoints'>[] },
  open: ReadonlySet<string> = new Set(),
): Outputs | null {
  const urls = new Set(units.flatMap(({ endpoints }) => endpoints.map(({ url }) => url)))
  const told = Object.entries(outputs).filter(([, value]) => !urls.has(value))
  return told.some(([name]) => !open.has(name)) ? Object.fromEntries(told) : null
}

/** `of`: the id of a unit or a stack. */
export function keepTold(of: string, outputs: Outputs | null): void {
  if (outputs === null) kept.delete(of)
  else kept.set(of, outputs)
  for (const watcher of watchers) watcher()
}

export function useTold(of: string): Outputs | null {
  return useSyncExternalStore(watch, () => kept.get(of) ?? null)
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

// The page's memory ends with it: the browser asks before.
addEventListener('beforeunload', (event) => {
  if (kept.size > 0) event.preventDefault()
})
