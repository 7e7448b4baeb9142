// Spending and records: usage, quota, audit, keys.

import type { Contract } from '@berth/sdk'
import { oneOf, wholeNumber } from '../args.ts'
import type { Context } from '../context.ts'
import { whatOf, whoOf } from '../../../../src/contract/audit-sentences.ts'
import { euros } from '../../../../src/lib/money.ts'
import { type Cell, clean, print, printJson, printTable, relative } from '../output.ts'

export async function usage(context: Context): Promise<void> {
  const days = context.args.text('days')
  const by = oneOf(context.args.text('by'), ['agent', 'stack', 'unit'], 'part')
  const asked = { by, ...(days === undefined ? {} : { days: wholeNumber(days, 'number of days') }) }
  const used = await context.berth().usage({ ...asked, signal: context.signal })
  if (context.isJson) return await printJson(used)
  const hours = (seconds: Record<string, number>) =>
    Object.values(seconds).reduce((sum, each) => sum + each, 0) / 3600
  await printTable(
    ['DAY', 'COST', 'HOURS RUN'],
    used.days.map(({ date, costCents, unitSeconds }) => [
      date,
      euros(costCents),
      hours(unitSeconds).toFixed(1),
    ]),
  )
  await print(`in all  ${euros(used.totalCents)}`)
  if (by !== undefined) await printParts(by, used.days)
}

async function printParts(by: string, days: Contract.Usage['days']): Promise<void> {
  const sums = new Map<string, { name: string; cents: number }>()
  for (const { id, name, costCents } of days.flatMap(({ parts = [] }) => parts))
    sums.set(id, { name, cents: (sums.get(id)?.cents ?? 0) + costCents })
  const rest = days.reduce((sum, { restCents = 0 }) => sum + restCents, 0)
  const lines = [...sums.values()].sort((one, other) => other.cents - one.cents)
  if (rest > 0) lines.push({ name: 'the rest', cents: rest })
  await printTable(
    [by.toUpperCase(), 'COST'],
    lines.map(({ name, cents }) => [name, euros(cents)]),
  )
}

export async function quota(context: Context): Promise<void> {
  const left = await context.berth().quota({ signal: context.signal })
  if (context.isJson) return await printJson(left)
  const { units, disk, spendToday } = left
  const cap = spendToday.capCents === null ? 'no cap' : euros(spendToday.capCents)
  await printTable(
    ['WHAT', 'USED', 'OF'],
    [
      ['units that run', String(units.live), String(units.max)],
      ['disk', `${disk.promisedGb} GB`, `${disk.maxGb} GB`],
      ['spent today', euros(spendToday.cents), cap],
      ['credits left', euros(left.creditBalanceCents), ''],
      ...left.rates.map(({ name, limit, remaining }) => [
        `${name} a minute`,
        String(limit - remaining),
        String(limit),
      ]),
    ],
  )
}

export async function audit(context: Context): Promise<void> {
  const { args, signal, isJson } = context
  const limit = wholeNumber(args.text('lines') ?? '20', 'number of lines')
  const filter = {
    limit: Math.min(limit, 500),
    agent: args.text('agent'),
    key: args.text('key'),
    action: args.text('action'),
    target: args.text('target'),
    since: args.text('since'),
    until: args.text('until'),
    failed: args.flag('failed') || undefined,
    signal,
  }
  const events = []
  if (limit > 0)
    for await (const event of context.berth().audit(filter)) if (events.push(event) >= limit) break
  if (isJson) return await printJson(events)
  const status = (code: number | null): Cell => ({
    text: String(code ?? '-'),
    colour: code !== null && code < 400 ? 'green' : 'red',
  })
  await printTable(
    ['WHEN', 'WHO', 'WHAT', 'STATUS', 'COST'],
    events.map((event) => [
      relative(event.at),
      whoOf(event),
      whatOf(event),
      status(event.status),
      euros(event.costDeltaCents),
    ]),
  )
}

/** Until it is interrupted, or the service is away for longer than the library waits. */
export async function events(context: Context): Promise<void> {
  const { signal, isJson } = context
  for await (const { event, data } of context.berth().events({ changes: true, signal })) {
    if (isJson) await printJson({ event, data })
    else if (event === 'change') await print(clean(`${data.at}  ${data.sentence}`))
  }
}

export async function keys(context: Context): Promise<void> {
  const { agents, seats } = await context.berth().agents({ signal: context.signal })
  if (context.isJson) return await printJson({ agents, seats })
  await printTable(
    ['NAME', 'KIND', 'UNITS', 'A DAY', 'SIZES', 'ENDS', 'LAST USED'],
    agents.map(({ name, kind, policy, lastUsedAt, revokedAt }) => [
      name,
      kind === 'key' ? 'key' : 'connected',
      String(policy.maxConcurrentUnits ?? '-'),
      euros(policy.dailySpendCapCents ?? 0),
      (policy.allowedSizes ?? []).join(', '),
      revokedAt === null ? relative(policy.expiresAt ?? null) : 'revoked',
      relative(lastUsedAt),
    ]),
  )
}
