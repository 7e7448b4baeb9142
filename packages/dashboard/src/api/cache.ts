// The cache of responses, by noun and team.

import type { Contract } from '@berth/sdk'
import { QueryClient, type QueryKey } from '@tanstack/react-query'

export const cache = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 10 * 60_000,
      retry: false,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      // A network that a browser believes to be gone may still reach this machine.
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
})

export type Money = { spentTodayCents: number; capCents: number | null; creditBalanceCents: number }
/** The units of a team; not complete while more pages are read. */
export type UnitRows = { units: Contract.Unit[]; isComplete: boolean }

/** Keys of the cache: everything of a team begins with its id, so that all of it can be read again. */
export const keys = {
  units: (team: string) => [team, 'units'],
  unit: (team: string, id: string) => [team, 'unit', id],
  stacks: (team: string) => [team, 'stacks'],
  agents: (team: string) => [team, 'agents'],
  hosted: (team: string) => [team, 'hosted'],
  money: (team: string) => [team, 'money'],
  members: (team: string) => [team, 'members'],
  me: ['me'],
} satisfies Record<string, QueryKey | ((...ids: string[]) => QueryKey)>
