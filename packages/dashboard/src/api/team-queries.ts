// What the pages of a team read besides its units. Keys begin with the team, so all of it is read again after a gap in
// the stream of events.

import type { Contract } from '@berth/sdk'
import { queryOptions } from '@tanstack/react-query'
import { berthOf } from './client.ts'
import { liveOf } from './live.ts'
import { keys } from './cache.ts'

export type AuditAsked = {
  agent?: string | undefined
  action?: string | undefined
  target?: string | undefined
  since?: string | undefined
  until?: string | undefined
  failed?: boolean | undefined
  changes?: boolean | undefined
}

const MINUTE_MS = 60_000

/** A sample is taken each minute, and is no event. */
export const historyQuery = (team: string, id: string, range: Contract.MetricsHistory['range']) =>
  queryOptions({
    queryKey: [team, 'history', id, range],
    queryFn: async ({ signal }) =>
      await berthOf(team).request<Contract.MetricsHistory>(
        'GET',
        `/v1/units/${encodeURIComponent(id)}/metrics/history`,
        { query: { range }, signal },
      ),
    refetchInterval: MINUTE_MS,
    staleTime: MINUTE_MS / 2,
  })

export const recentQuery = (team: string) =>
  queryOptions({
    queryKey: [team, 'recent'],
    queryFn: async ({ signal }) =>
      await berthOf(team).request<Contract.RecentMetrics>('GET', '/v1/metrics/recent', { signal }),
    refetchInterval: 5 * MINUTE_MS,
    staleTime: MINUTE_MS,
  })

export const agentsQuery = (team: string) =>
  queryOptions({
    queryKey: keys.agents(team),
    queryFn: async ({ signal }) => {
      await liveOf(team).begun()
      return await berthOf(team).agents({ signal })
    },
  })

/** What controllers tell is no event. */
const LOOK_MS = 3000

export const hostedListQuery = (team: string) =>
  queryOptions({
    queryKey: keys.hosted(team),
    queryFn: async ({ signal }) => await berthOf(team).hostedAgents.list({ signal }),
    refetchInterval: 2 * LOOK_MS,
    staleTime: LOOK_MS,
  })

export const hostedQuery = (team: string, id: string) =>
  queryOptions({
    queryKey: [...keys.hosted(team), id],
    queryFn: async ({ signal }) => await berthOf(team).hostedAgents.get(id, { signal }),
    refetchInterval: LOOK_MS,
    staleTime: LOOK_MS / 2,
  })

export const usageQuery = (team: string, days: number) =>
  queryOptions({
    queryKey: [team, 'usage', days],
    queryFn: async ({ signal }) => await berthOf(team).usage({ days, signal }),
    // Money moves with every second that a unit runs.
    staleTime: 30_000,
  })

/** The same by what it was for. */
export const usagePartsQuery = (team: string, days: number, by: 'agent' | 'stack' | 'unit') =>
  queryOptions({
    queryKey: [team, 'usage', days, by],
    queryFn: async ({ signal }) => await berthOf(team).usage({ days, by, signal }),
    staleTime: 30_000,
  })

export const auditPage = async (
  team: string,
  asked: AuditAsked,
  cursor: string | null,
  signal: AbortSignal,
) =>
  await berthOf(team).request<Contract.AuditList>('GET', '/v1/audit', {
    query: { ...asked, cursor, limit: 100 },
    signal,
  })

export const membersQuery = (team: string) =>
  queryOptions({
    queryKey: keys.members(team),
    queryFn: async ({ signal }) => {
      await liveOf(team).begun()
      const path = `/v1/teams/${encodeURIComponent(team)}/members`
      return await berthOf(team).request<Contract.MemberList>('GET', path, { signal })
    },
  })

export const secretsQuery = (team: string) =>
  queryOptions({
    queryKey: [team, 'secrets'],
    queryFn: async ({ signal }) => await berthOf(team).secrets.list({ signal }),
    staleTime: 5000,
  })

export const paymentsQuery = (team: string) =>
  queryOptions({
    queryKey: [team, 'payments'],
    queryFn: async ({ signal }) =>
      await berthOf(team).request<Contract.PaymentList>(
        'GET',
        `/v1/teams/${encodeURIComponent(team)}/payments`,
        {
          signal,
        },
      ),
    staleTime: 5000,
  })

export const stacksQuery = (team: string) =>
  queryOptions({
    queryKey: keys.stacks(team),
    queryFn: async ({ signal }) => {
      await liveOf(team).begun()
      const stacks: Contract.Stack[] = []
      for (let cursor: string | null = null; ; ) {
        const page: Contract.StackList = await berthOf(team).request('GET', '/v1/stacks', {
          query: { limit: 100, cursor },
          signal,
        })
        stacks.push(...page.stacks)
        cursor = page.next
        if (cursor === null) return stacks
      }
    },
  })

export const recipesQuery = (team: string) =>
  queryOptions({
    queryKey: [team, 'recipes'],
    queryFn: async ({ signal }) =>
      await berthOf(team).request<Contract.RecipeList>('GET', '/v1/recipes', { signal }),
  })

export const recipeQuery = (team: string, name: string) =>
  queryOptions({
    queryKey: [team, 'recipe', name],
    queryFn: async ({ signal }) =>
      await berthOf(team).request<Contract.Recipe>('GET', `/v1/recipes/${encodeURIComponent(name)}`, {
        signal,
      }),
  })
