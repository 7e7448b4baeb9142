// What a change of a policy would stop, as the service says it. It is asked once a person has stopped typing, since each
// question is a call.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { berthOf } from '../api/client.ts'
import { partOf, type Policy, type PolicyField } from './policy-text.ts'

/** Only these stop or narrow what runs. */
const stopping: readonly PolicyField[] = [
  'maxConcurrentUnits',
  'dailySpendCapCents',
  'egress',
  'allowedSecrets',
]
const TYPING_MS = 500

/** Returns the units that the change would stop or narrow at once; null until that is known, or if it concerns none. */
export function useDryRun(
  team: string,
  id: string,
  { policy, changed }: { policy: Policy; changed: readonly PolicyField[] },
): Contract.AgentDryRun | null {
  const asked = JSON.stringify(
    partOf(
      policy,
      changed.filter((field) => stopping.includes(field)),
    ),
  )
  const settled = useSettled(asked)
  const isAsked = settled === asked && asked !== '{}'
  const { data } = useQuery({
    queryKey: [team, 'dry-run', id, settled],
    queryFn: async ({ signal }) =>
      await berthOf(team).request<Contract.AgentDryRun>(
        'POST',
        `/v1/agents/${encodeURIComponent(id)}/dry-run`,
        {
          body: { policy: JSON.parse(settled) },
          signal,
        },
      ),
    enabled: isAsked,
    // Units come and go.
    staleTime: 10_000,
    gcTime: 0,
  })
  return isAsked ? (data ?? null) : null
}

/** The value once it has not changed for a moment. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), TYPING_MS)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}
