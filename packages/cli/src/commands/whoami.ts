// `berth whoami`: the service, what this program is signed in with, and what that may do.

import { profileUsed, type Context } from '../context.ts'
import { euros } from '../../../../src/lib/money.ts'
import { printJson, printTable } from '../output.ts'

export async function whoami(context: Context): Promise<void> {
  const berth = context.berth()
  const { by, profile } = profileUsed(context.args)
  const { units, spendToday, allowedSizes, expiresAt } = await berth.quota({ signal: context.signal })
  const facts = {
    url: berth.url,
    profile,
    by,
    units: { live: units.live, max: units.max },
    spendToday,
    allowedSizes,
    expiresAt,
  }
  if (context.isJson) return await printJson(facts)
  const cap = spendToday.capCents === null ? '' : ` of ${euros(spendToday.capCents)}`
  await printTable(null, [
    ['service', facts.url],
    ['signed in by', profile === null ? by : `${by}, profile "${profile}"`],
    ['units', `${units.live} run, of ${units.max}`],
    ['spent today', `${euros(spendToday.cents)}${cap}`],
    ['sizes', allowedSizes.join(', ')],
    ['valid until', expiresAt ?? 'it is revoked'],
  ])
}
