// The rates of a credential: the service's, unless its policy has others, which may be so many times as high as the operator says.

import type { App } from '../../app.ts'
import { validation } from '../../contract/errors.ts'
import { type Policy, type RateClass, rateClasses } from '../../contract/policy.ts'

export type Rates = Record<RateClass, number>
type Needs = Pick<App, 'config'>

/** Returns the calls of each kind in a minute. A policy of before the operator's bound became lower is within it too. */
export function ratesOf({ config }: Needs, own: Policy['rates'] = {}): Rates {
  const { rates, rateTimes } = config
  const of = (name: RateClass) => Math.min(own[name] ?? rates[name], rates[name] * rateTimes)
  return { requests: of('requests'), creations: of('creations'), execs: of('execs') }
}

/** Throws `validation` for rates that are higher than a policy may have here. */
export function checkRates(app: Needs, asked: Policy['rates'] | undefined): void {
  if (asked === undefined) return
  const most = ratesOf(app, { requests: Infinity, creations: Infinity, execs: Infinity })
  const issues = rateClasses.flatMap((name) =>
    (asked[name] ?? 0) > most[name]
      ? [{ path: `policy.rates.${name}`, message: `must be at most ${most[name]}, the operator's bound` }]
      : [],
  )
  if (issues.length > 0) throw validation(issues)
}
