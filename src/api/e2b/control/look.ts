// Reading sandboxes: lists, one of them, what it uses and its log.

import { z } from 'zod'
import { validation } from '../../../contract/errors.ts'
import { getPortVisits } from '../../../domain/units/port-rules.ts'
import { parse } from '../../../contract/parse.ts'
import { PORT_HOST_STACK } from '../../../contract/port-host.ts'
import type { LogPage } from '../../../contract/logs.ts'
import type { Unit, UnitList } from '../../../contract/unit.ts'
import { type ControlAnswer, type ControlCall, perform } from './call.ts'
import { findSandbox, toDetail, toListed } from './sandbox.ts'
import { noneWithoutStack } from './snapshots.ts'
import { templateIn } from './templates.ts'

const states = {
  running: ['creating', 'starting', 'running'],
  paused: ['stopping', 'sleeping', 'stopped'],
} as const

const listSchema = z.object({
  state: z.string().default('running,paused'),
  metadata: z.string().optional(),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, 'must be a number from 1 to 100')
    .default('100'),
  nextToken: z.string().optional(),
  order: z.enum(['asc', 'desc']).default('desc'),
  template: z.string().optional(),
  startedAfter: z.iso.datetime({ offset: true }).optional(),
})

const MAX_LIMIT = 100

/** Pages of the API that are read for one of this interface. */
const MAX_PAGES = 20

/** A page may have fewer sandboxes than asked for, where some of it are not of the template or are older; none only at the end. */
export async function listSandboxes(call: ControlCall): Promise<ControlAnswer> {
  const asked = listQuery(call)
  const query = {
    stack: PORT_HOST_STACK,
    state: statesOf(asked.state),
    limit: String(Math.min(Number(asked.limit), MAX_LIMIT)),
    sort: asked.order === 'asc' ? 'createdAt' : '-createdAt',
    ...(asked.nextToken === undefined ? {} : { cursor: asked.nextToken }),
    ...(asked.metadata === undefined ? {} : { metadata: pairsOf(asked.metadata) }),
  }
  const after = asked.startedAfter === undefined ? 0 : Date.parse(asked.startedAfter)
  const isWanted = (unit: Unit) =>
    (asked.template === undefined || templateIn(unit) === asked.template) &&
    Date.parse(unit.startedAt ?? unit.createdAt) >= after
  let page = await readPage(call, query)
  let wanted = page.units.filter(isWanted)
  for (let read = 1; wanted.length === 0 && page.next !== null && read < MAX_PAGES; read += 1) {
    page = await readPage(call, { ...query, cursor: page.next })
    wanted = page.units.filter(isWanted)
  }
  const headers: Record<string, string> = page.next === null ? {} : { 'x-next-token': page.next }
  return { status: 200, body: wanted.map(toListed), headers }
}

async function readPage(call: ControlCall, query: Record<string, string>): Promise<UnitList> {
  return await perform(call, { route: 'GET /v1/units', input: { query } })
    .then((list) => list as UnitList)
    .catch(noneWithoutStack)
}

function listQuery({ query }: ControlCall): z.output<typeof listSchema> {
  const given = [...Map.groupBy(query, ([name]) => name)]
  return parse(
    listSchema,
    Object.fromEntries(given.map(([name, pairs]) => [name, pairs.map(([, value]) => value).join(',')])),
  )
}

function statesOf(asked: string): string {
  const names = asked.split(',')
  const unknown = names.find((name) => !Object.hasOwn(states, name))
  if (unknown !== undefined)
    throw validation([{ path: 'state', message: 'must be running, paused, or both separated by a comma' }])
  return names.flatMap((name) => states[name as keyof typeof states]).join(',')
}

/** Clients encode each name and value once more than a query string does. */
function pairsOf(metadata: string): string {
  try {
    const pairs = new URLSearchParams()
    for (const [name, value] of new URLSearchParams(metadata))
      pairs.append(decodeURIComponent(name), decodeURIComponent(value))
    return pairs.toString()
  } catch {
    throw validation([{ path: 'metadata', message: 'must be pairs as in a query string' }])
  }
}

export async function getSandbox(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const { app, sender } = call
  const unit = await findSandboxAudited(call, sandboxId)
  const visits = await getPortVisits(app, sender.caller, unit.id)
  return { status: 200, body: toDetail(app, sender.caller, unit, visits) }
}

async function findSandboxAudited(call: ControlCall, sandboxId: string) {
  const { app, sender } = call
  let found: Awaited<ReturnType<typeof findSandbox>> | null = null
  await perform(call, {
    route: 'GET /v1/units/{id}',
    input: async () => {
      found = await findSandbox(app, sender.caller, sandboxId)
      return { params: { id: found.id } }
    },
  })
  if (found === null) throw new TypeError('an operation was answered before its input was read')
  return found as Awaited<ReturnType<typeof findSandbox>>
}

export async function readLogs(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const page = (await ofSandbox(call, sandboxId, 'GET /v1/units/{id}/logs', { limit: '500' })) as LogPage
  const logs = page.lines.map(({ at, text }) => ({ timestamp: at, line: text }))
  const logEntries = page.lines.map(({ at, text, stream }) => ({
    timestamp: at,
    message: text,
    level: stream === 'stderr' ? 'error' : 'info',
    fields: {},
  }))
  return { status: 200, body: { logs, logEntries } }
}

/** A read about a sandbox that exists. */
export async function ofSandbox(
  call: ControlCall,
  sandboxId: string,
  route: string,
  query: Record<string, string>,
): Promise<unknown> {
  const { app, sender } = call
  return await perform(call, {
    route,
    input: async () => ({ params: { id: (await findSandbox(app, sender.caller, sandboxId)).id }, query }),
  })
}
