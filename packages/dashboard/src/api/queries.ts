// The queries of the pages, by noun. Nothing is polled: the stream of events keeps the cache up to date (live.ts).

import type { Contract } from '@berth/sdk'
import { queryOptions } from '@tanstack/react-query'
import { cache, keys, type Money, type UnitRows } from './cache.ts'
import { eventsSoFar, isToldSince } from './apply-event.ts'
import { berth, berthOf } from './client.ts'
import { liveOf } from './live.ts'

export const meQuery = queryOptions({
  queryKey: keys.me,
  queryFn: async ({ signal }) => await berth.request<Contract.Me>('GET', '/v1/me', { signal }),
})

export const unitsQuery = (team: string) =>
  queryOptions({
    queryKey: keys.units(team),
    queryFn: async ({ signal, queryKey }): Promise<UnitRows> => {
      await liveOf(team).begun()
      const units: Contract.Unit[] = []
      for (let cursor: string | null = null; ; ) {
        const page: Contract.UnitList = await berthOf(team).request('GET', '/v1/units', {
          query: { limit: 500, cursor },
          signal,
        })
        units.push(...page.units)
        cursor = page.next
        if (cursor === null) return { units, isComplete: true }
        cache.setQueryData<UnitRows>(queryKey, { units: [...units], isComplete: false })
      }
    },
  })

export const unitQuery = (team: string, id: string) =>
  queryOptions({
    queryKey: keys.unit(team, id),
    queryFn: async ({ signal }) => {
      await liveOf(team).begun()
      const asOf = eventsSoFar()
      const path = `/v1/units/${encodeURIComponent(id)}`
      const unit = await berthOf(team).request<Contract.Unit>('GET', path, { signal })
      return (isToldSince(id, asOf) && cache.getQueryData<Contract.Unit>(keys.unit(team, id))) || unit
    },
  })

export const moneyQuery = (team: string) =>
  queryOptions({
    queryKey: keys.money(team),
    queryFn: async ({ signal }): Promise<Money> => {
      const { spendToday, creditBalanceCents } = await berthOf(team).quota({ signal })
      return { spentTodayCents: spendToday.cents, capCents: spendToday.capCents, creditBalanceCents }
    },
  })

export const pricingQuery = queryOptions({
  queryKey: ['pricing'],
  queryFn: async ({ signal }) => await berth.pricing({ signal }),
})
