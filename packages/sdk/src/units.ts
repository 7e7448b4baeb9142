// Units: create, find and list them.

import type {
  CreateFromSpec,
  RecentMetrics,
  RunResult,
  Unit as UnitInfo,
  UnitList,
  UnitSpec,
  UnitSummary,
} from './contract.ts'
import { BerthError } from './errors.ts'
import { type List, type ListOptions, listOf } from './list.ts'
import { type CallOptions, type MakeOptions, newKey, type Transport } from './transport.ts'
import { DEFAULT_WAIT_MS, type Making, Unit, waitOf } from './unit.ts'

export type CreateOptions = Omit<UnitSpec, 'name' | 'expose'> &
  Omit<CreateFromSpec, 'spec'> & {
    /** Default: one made of the image's name. */
    name?: string | undefined
    /** The port that `expose` publishes, of a unit with several. */
    exposePort?: number | undefined
  } & MakeOptions

export type UnitFilter = ListOptions & {
  /** Name or id of a stack. */
  stack?: string | undefined
  /** Destroyed ones too. */
  all?: boolean | undefined
  /** In one of these states. */
  state?: UnitInfo['state'] | readonly UnitInfo['state'][] | undefined
  /** In the name, the name of the stack, or the image. */
  q?: string | undefined
  /** With all of these labels. */
  metadata?: Record<string, string> | undefined
}

type Order = 'createdAt' | 'name' | 'state' | 'cost' | 'lastUsedAt'

export type UnitListOptions = UnitFilter & {
  /** With `-`, the greatest or newest first. Default: `-createdAt`. */
  sort?: Order | `-${Order}` | undefined
}

export type Units = {
  /** An image, or a whole description. Waits until the unit runs, unless `wait` is false. */
  create: (asked: string | CreateOptions, options?: MakeOptions) => Promise<Unit>
  list: (options?: UnitListOptions) => List<Unit>
  /** How many match, also by state, and what they cost an hour. */
  summary: (filter?: Omit<UnitFilter, 'limit'>) => Promise<UnitSummary>
  /** What each unit that ran used in the last day, by the hour. */
  recentMetrics: (options?: CallOptions) => Promise<RecentMetrics>
  /** A handle of a unit that an answer or an event told of. Asks nothing. */
  of: (info: UnitInfo) => Unit
  /** By id. Throws `not_found`. */
  get: (id: string, options?: CallOptions) => Promise<Unit>
  /** By name; null where there is none. Throws `validation` where several stacks have one. */
  find: (name: string, filter?: UnitFilter) => Promise<Unit | null>
}

export function unitsOf(transport: Transport): Units {
  const path = '/v1/units'
  const list: Units['list'] = ({ stack, all, state, q, metadata, sort, limit, ...options } = {}) =>
    listOf(async (cursor) => {
      const query = {
        stack,
        all,
        state: statesOf(state),
        q,
        metadata: pairsOf(metadata),
        sort,
        limit,
        cursor,
      }
      const { units, next } = await transport.json<UnitList>({ method: 'GET', path, query, ...options })
      return { items: units.map((info) => new Unit(transport, info)), next }
    })
  return {
    create: async (asked, options = {}) => {
      const [unit] = await makeUnits(
        transport,
        typeof asked === 'string' ? { image: asked, ...options } : { ...asked, ...options },
      )
      return unit
    },
    list,
    summary: async ({ stack, all, state, q, metadata, ...options } = {}) =>
      await transport.json<UnitSummary>({
        method: 'GET',
        path: `${path}/summary`,
        query: { stack, all, state: statesOf(state), q, metadata: pairsOf(metadata) },
        ...options,
      }),
    recentMetrics: async (options = {}) =>
      await transport.json<RecentMetrics>({ method: 'GET', path: '/v1/metrics/recent', ...options }),
    of: (info) => new Unit(transport, info),
    get: async (id, options = {}) => {
      const info = await transport.json<UnitInfo>({
        method: 'GET',
        path: `${path}/${encodeURIComponent(id)}`,
        ...options,
      })
      return new Unit(transport, info)
    },
    find: async (name, filter) => {
      const found: Unit[] = []
      for await (const unit of list(filter)) if (unit.name === name) found.push(unit)
      if (found.length > 1) {
        const ids = found.map(({ id }) => id).join(', ')
        throw new BerthError(
          'validation',
          `Several stacks have a unit "${name}": name one by its id (${ids}).`,
        )
      }
      return found[0] ?? null
    },
  }
}

function statesOf(state: UnitFilter['state']): string | undefined {
  return typeof state === 'object' ? state.join(',') : state
}

function pairsOf(metadata: UnitFilter['metadata']): string | undefined {
  return metadata && new URLSearchParams(metadata).toString()
}

async function makeUnits(transport: Transport, asked: CreateOptions): Promise<[Unit, ...Unit[]]> {
  const { signal, timeoutMs, idempotencyKey, stack, expose, exposePort, wait, waitTimeoutMs, name, ...spec } =
    asked
  const whole = { ...spec, name: name ?? nameFor(spec.image), expose: exposePort }
  const body = { spec: whole, stack, expose, wait, waitTimeoutMs }
  const { units } = await makeFrom(transport, body, { signal, timeoutMs, idempotencyKey })
  return units
}

export type Made = Making & { units: [Unit, ...Unit[]] }

/** A create of either form. A wait that is longer than one call may take goes on by asking. */
export async function makeFrom(
  transport: Transport,
  body: { wait?: boolean | undefined; waitTimeoutMs?: number | undefined; [field: string]: unknown },
  { signal, timeoutMs, idempotencyKey = newKey() }: MakeOptions,
): Promise<Made> {
  const { waitMs, ...wait } = waitOf(body)
  const result = await transport.json<RunResult>({
    method: 'POST',
    path: '/v1/units',
    body: { ...body, ...wait },
    signal,
    timeoutMs,
    idempotencyKey,
    extraMs: waitMs,
  })
  const { outputs, costLine } = result
  const [first, ...others] = result.units.map((info) => new Unit(transport, info, { outputs, costLine }))
  if (!first) throw new BerthError('internal', 'A create without a unit was answered.')
  const restMs = (body.waitTimeoutMs ?? DEFAULT_WAIT_MS) - waitMs
  if (wait.wait && restMs > 0) {
    // As the call itself would have: one that is still creating after this is on its way.
    const rest = [first, ...others].map(async (unit) => await unit.ready({ timeoutMs: restMs, signal }))
    for (const outcome of await Promise.allSettled(rest))
      if (outcome.status === 'rejected' && !isLate(outcome.reason)) throw outcome.reason
  }
  return { units: [first, ...others], outputs, costLine, copied: null }
}

const isLate = (error: unknown) => error instanceof BerthError && error.code === 'timed_out'

/** Returns a name for a unit of an image: `python-7f3a9c` for `berth.local/python:3.11`. */
export function nameFor(image: string): string {
  const last = image.split('@')[0]?.split('/').at(-1)?.split(':')[0] ?? ''
  const word = last
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 20)
    .replace(/^-+|-+$/g, '')
  return `${word || 'unit'}-${newKey().slice(0, 6)}`
}
