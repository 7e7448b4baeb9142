// What the server put into the page (src/api/web/first-view.ts): the answers go into the cache, and the list as HTML stays
// until the dashboard has drawn its own.

import type { Contract } from '@berth/sdk'
import { cache, keys, type Money, type UnitRows } from '../api/cache.ts'
import { pricingQuery } from '../api/queries.ts'

type FirstData = {
  me: Contract.Me
  /** With the id of a team: the beginning of the list of its units, and its money. */
  team?: string
  units?: Contract.Unit[]
  isComplete?: boolean
  pricing?: Contract.Pricing
  quota?: Contract.Quota
}

export function takeFirstData(): void {
  const text = document.getElementById('first-data')?.textContent
  if (!text) return
  const { me, team, units = [], isComplete = false, pricing, quota } = JSON.parse(text) as FirstData
  cache.setQueryData(keys.me, me)
  if (pricing) cache.setQueryData(pricingQuery.queryKey, pricing)
  if (team === undefined || !quota) return
  const { spendToday, creditBalanceCents } = quota
  const money = { spentTodayCents: spendToday.cents, capCents: spendToday.capCents, creditBalanceCents }
  cache.setQueryData<Money>(keys.money(team), money)
  cache.setQueryData<UnitRows>(keys.units(team), { units, isComplete })
  // It is older than the stream of events: what changed in between is in neither, so the list is read again.
  void cache.invalidateQueries({ queryKey: keys.units(team), refetchType: 'none' })
}

/** How long something that still loads may hold the dashboard back. */
const LONGEST_MS = 5000

/**
 * In the frame in which the dashboard has drawn all of its own, the first view goes. The focus stays on the same link, and
 * the list where it was scrolled to.
 */
export function giveWay(root: HTMLElement): void {
  const first = document.getElementById('first')
  if (!first) return
  const began = performance.now()
  const look = () => {
    if (root.childElementCount === 0) return
    if (root.querySelector('[data-waiting]') && performance.now() - began < LONGEST_MS) return
    observer.disconnect()
    const { activeElement } = document
    const href = first.contains(activeElement) ? activeElement?.getAttribute('href') : null
    const [from, to] = [first, root].map((each) => each.querySelector('[role="table"]')?.parentElement)
    if (from && to) to.scrollTop = from.scrollTop
    first.remove()
    if (href) [...root.querySelectorAll('a')].find((link) => link.getAttribute('href') === href)?.focus()
  }
  const observer = new MutationObserver(look)
  observer.observe(root, { childList: true, subtree: true })
  setTimeout(look, LONGEST_MS)
}
