// The units of the caller's team: a page of them, and how many there are.

import type { App } from '../../app.ts'
import { notACursor, parseCursor } from '../../contract/cursor.ts'
import { limits } from '../../contract/limits.ts'
import type {
  UnitList,
  UnitListQuery,
  UnitOrder,
  UnitSummary,
  UnitSummaryQuery,
} from '../../contract/unit.ts'
import { unitOrders } from '../../contract/unit.ts'
import { unitStates } from '../../contract/states.ts'
import { decodeFields, encodeCursor, encodeFields } from '../../lib/cursor.ts'
import { isId } from '../../lib/ids.ts'
import { toCents } from '../../lib/money.ts'
import { readProven } from '../../store/meters.ts'
import { listUnitsOfTeam, summarizeUnits, type UnitFilter, type UnitPage } from '../../store/unit-lists.ts'
import type { Caller } from '../credentials/caller.ts'
import { toUnit } from './model/to-unit.ts'
import { getStackRecord } from './model/stack-record.ts'

type UnitSort = NonNullable<UnitListQuery['sort']>
type Beginning = Pick<UnitPage, 'order' | 'descending' | 'after'> & { costsAt: Date | null }
type Found = Awaited<ReturnType<typeof listUnitsOfTeam>>[number]

export async function listUnits(app: App, caller: Caller, query: UnitListQuery): Promise<UnitList> {
  const { sort = '-createdAt', cursor, limit } = query
  const begins = firstOf(sort, cursor)
  const filter = await filterOf(app, caller, query)
  const now = app.clock.now()
  const { order, descending, after } = begins
  const costsAt = begins.costsAt ?? (order === 'cost' ? await readProven(app.db, now) : now)
  // One more row than asked for, to know whether there is a next page.
  const page = { order, descending, after, limit: limit + 1, now, costsAt }
  const found = await listUnitsOfTeam(app.db, filter, page)
  const shown = found.slice(0, limit)
  const last = shown.at(-1)
  return {
    units: shown.map(({ unit }) => toUnit(app, unit)),
    next: found.length > shown.length && last ? cursorAfter(sort, begins, last, costsAt) : null,
  }
}

export async function readUnitSummary(
  app: App,
  caller: Caller,
  query: UnitSummaryQuery,
): Promise<UnitSummary> {
  const found = await summarizeUnits(app.db, await filterOf(app, caller, query))
  const countOf = (state: string) => Number(found.find((each) => each.state === state)?.count ?? 0)
  const byState = Object.fromEntries(unitStates.map((state) => [state, countOf(state)]))
  return {
    byState: byState as UnitSummary['byState'],
    centsPerHour: toCents(found.reduce((sum, { nanoCentsPerHour }) => sum + nanoCentsPerHour, 0n)),
    total: found.reduce((sum, { count }) => sum + Number(count), 0),
  }
}

/** Once what this server knows of them is written. */
async function filterOf(
  app: App,
  caller: Caller,
  { stack, state, q, all, metadata }: UnitSummaryQuery,
): Promise<UnitFilter> {
  const { teamId } = caller
  const stackId = stack === undefined ? null : (await getStackRecord(app, caller, stack)).id
  await app.activity.unwrittenWakes.untilWritten({ teamId })
  const [states, part] = [state ?? null, q ?? null]
  return { teamId, stackId, states, destroyedToo: all, part, metadata: metadata ?? null }
}

/** Throws `validation` for a cursor that no page with this sort answered. */
function firstOf(sort: UnitSort, cursor: string | undefined): Beginning {
  const order = unitOrders.find((each) => sort === each || sort === `-${each}`) ?? 'createdAt'
  const begins = { order, descending: sort.startsWith('-') }
  if (cursor === undefined) return { ...begins, after: null, costsAt: null }
  if (order === 'createdAt') {
    const id = parseCursor(cursor, 'unit') ?? ''
    return { ...begins, after: { value: id, id }, costsAt: null }
  }
  const [by, id = '', value = '', costsAt = ''] = decodeFields(cursor)
  const isOurs = by === sort && isId('unit', id) && looksRight[order](value)
  if (!isOurs || !isMoment(costsAt)) throw notACursor()
  return { ...begins, after: { value, id }, costsAt: new Date(costsAt) }
}

function cursorAfter(sort: UnitSort, { order }: Beginning, last: Found, costsAt: Date): string {
  if (order === 'createdAt') return encodeCursor(last.unit.id)
  return encodeFields([sort, last.unit.id, last.value, costsAt.toISOString()])
}

const isCount = (text: string) => /^\d{1,18}$/.test(text)
const isMoment = (text: string) => !Number.isNaN(Date.parse(text))

/** Whether Postgres can compare a value of a cursor with that of a unit. */
const looksRight = {
  name: (value) => value.length <= limits.nameLength && !value.includes('\0'),
  state: (value) => unitStates.some((state) => state === value),
  cost: isCount,
  lastUsedAt: isCount,
} satisfies Record<Exclude<UnitOrder, 'createdAt'>, (value: string) => boolean>
