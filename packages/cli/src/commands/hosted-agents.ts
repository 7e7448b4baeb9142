// `berth agents ls` and `berth agents sessions`: what the server's own controllers do. People set them up in the dashboard.

import { Failure } from '../failure.ts'
import type { Context } from '../context.ts'
import { note, print, printJson, printTable, relative } from '../output.ts'

export async function ls({ berth, isJson, signal }: Context): Promise<void> {
  const environments = await berth().hostedAgents.list({ signal })
  if (isJson) return await printJson(environments)
  await printTable(
    ['ENVIRONMENT', 'VENDOR', 'STATE', 'WORKING', 'IMAGE'],
    environments.map(({ environment, vendor, state, working, image }) => [
      environment,
      vendor,
      state,
      String(working),
      image,
    ]),
  )
  for (const { environment, note: why } of environments) if (why !== null) note(`${environment}: ${why}`)
}

export async function sessions({ args, berth, isJson, signal }: Context): Promise<void> {
  const [named = ''] = args.args
  const all = await berth().hostedAgents.list({ signal })
  const found = all.find(({ id, environment }) => id === named || environment === named)
  if (!found)
    throw new Failure(`The team has no environment "${named}".`, {
      hint: 'berth agents ls',
      code: 'not_found',
    })
  const answer = await berth().hostedAgents.get(found.id, { signal })
  if (isJson) return await printJson(answer.sessions)
  if (answer.sessions.length === 0) return await print('No session yet.')
  await printTable(
    ['SESSION', 'STATE', 'TURNS', 'COST', 'UNIT', 'CHANGED'],
    answer.sessions.map(({ id, state, turns, costCents, unit, changedAt }) => [
      id,
      state,
      String(turns),
      `€${(costCents / 100).toFixed(4)}`,
      unit?.name ?? '-',
      relative(changedAt),
    ]),
  )
}
