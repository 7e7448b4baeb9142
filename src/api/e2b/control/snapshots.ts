// A snapshot is a copy of a sandbox that sleeps in a stack of its own: it has an id and a disk, costs what a sleeping unit
// costs, and nothing wakes it. A sandbox that is made of one is a copy of it.

import { z } from 'zod'
import { notFound } from '../../../contract/errors.ts'
import { limits } from '../../../contract/limits.ts'
import { parse } from '../../../contract/parse.ts'
import { type Unit, type UnitList, unitListQuerySchema } from '../../../contract/unit.ts'
import { getUnit } from '../../../domain/units/get.ts'
import { listUnits } from '../../../domain/units/list.ts'
import { toAppError } from '../../http/errors.ts'
import { sandboxIdOf, unitIdOf } from '../sandbox-id.ts'
import { asBusy, type ControlAnswer, type ControlCall, perform, readJson } from './call.ts'
import { copyUnit, destroyUnit, discardUnit, newName, sleepNow, stopUnit } from './make.ts'
import { findSandbox, isGone, isPaused, SNAPSHOT_OF } from './sandbox.ts'
import { startLabelIn } from './start-command.ts'

/** The stack of all snapshots of a team. */
export const SNAPSHOT_STACK = 'sandbox-snapshots'

const NAME = 'snapshotName'
/** The label of a tag has this before the tag. */
const TAG = 'snapshotTag.'
const TAGGED = 'yes'
export const DEFAULT_TAG = 'default'

/** A name, perhaps with the project before it and a tag behind it. */
export const REFERENCE = /^(?:[\w.-]+\/)?([a-z0-9][\w.-]{0,127})(?::([\w.-]{1,64}))?$/i

const createSchema = z.object({
  /** False: of its disk alone. */
  memory: z.boolean().nullish(),
  name: z.string().regex(REFERENCE, 'must be a name such as my-snapshot or my-snapshot:v1').nullish(),
})

/** The copy goes on from the moment of the copy until it sleeps. Its source keeps running. */
export async function createSnapshot(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const { app, sender } = call
  const { name, memory } = await readJson(call, createSchema)
  const source = await findSandbox(app, sender.caller, sandboxId)
  const copy = await copyUnit(call, source.id, {
    name: newName('snapshot'),
    stack: SNAPSHOT_STACK,
    sleep: 'never',
    timeToLive: 'never',
    metadata: { [SNAPSHOT_OF]: sandboxId, ...labelsOf(name), ...startLabelIn(source) },
    waitTimeoutMs: limits.waitTimeoutMs.max,
  })
  if (memory === false || !isPaused(copy)) await putToRest(call, copy, memory !== false)
  return { status: 201, body: toSnapshot(copy) }
}

/** One that cannot sleep is none. */
async function putToRest(call: ControlCall, { id }: Unit, keepsMemory: boolean): Promise<void> {
  await (keepsMemory ? sleepNow(call, id) : stopUnit(call, id)).catch(async (error: unknown) => {
    await discardUnit(call, id)
    throw asBusy(error)
  })
}

const listSchema = z.object({
  sandboxID: z.string().max(64).optional(),
  name: z.string().max(255).optional(),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, 'must be a number from 1 to 100')
    .default('100'),
  nextToken: z.string().optional(),
})

export async function listSnapshots(call: ControlCall): Promise<ControlAnswer> {
  const { sandboxID, name, limit, nextToken } = parse(listSchema, Object.fromEntries(call.query))
  const labels = { ...(sandboxID !== undefined && { [SNAPSHOT_OF]: sandboxID }), ...asLabels(name) }
  const query = {
    stack: SNAPSHOT_STACK,
    limit: String(Math.min(Number(limit), limits.pageSize.max)),
    ...(nextToken === undefined ? {} : { cursor: nextToken }),
    ...(Object.keys(labels).length === 0 ? {} : { metadata: new URLSearchParams(labels).toString() }),
  }
  const { units, next } = await perform(call, { route: 'GET /v1/units', input: { query } })
    .then((list) => list as UnitList)
    .catch(noneWithoutStack)
  const headers: Record<string, string> = next === null ? {} : { 'x-next-token': next }
  return { status: 200, body: units.filter(isSnapshot).map(toSnapshot), headers }
}

/** Of a name without a tag: every one that has it. */
export async function deleteSnapshot(call: ControlCall, reference: string): Promise<ControlAnswer> {
  const found = await findSnapshots(call, reference, asLabels(reference))
  if (found.length === 0) throw notFound('snapshot', reference)
  for (const { id } of found) await destroyUnit(call, id)
  return { status: 204, body: null }
}

/** The newest that has this id or name; null if there is none. */
export async function findSnapshot(call: ControlCall, reference: string): Promise<Unit | null> {
  return (await findSnapshots(call, reference, labelsOf(reference)))[0] ?? null
}

/** All that have this id, or this name with any tag, the newest first. */
export async function findTagged(call: ControlCall, name: string): Promise<Unit[]> {
  return await findSnapshots(call, name, asLabels(name))
}

async function findSnapshots(
  { app, sender: { caller } }: ControlCall,
  reference: string,
  labels: Record<string, string>,
): Promise<Unit[]> {
  const unitId = unitIdOf(reference.replace(`:${DEFAULT_TAG}`, ''))
  if (unitId !== null) {
    const unit = await getUnit(app, caller, unitId).catch(() => null)
    return unit !== null && isSnapshot(unit) ? [unit] : []
  }
  if (!REFERENCE.test(reference)) return []
  const metadata = new URLSearchParams(labels).toString()
  const query = parse(unitListQuerySchema, { stack: SNAPSHOT_STACK, metadata, sort: '-createdAt' })
  const { units } = await listUnits(app, caller, query).catch(noneWithoutStack)
  return units.filter(isSnapshot)
}

/** The stack is made with the first one. */
export function noneWithoutStack(error: unknown): UnitList {
  const known = toAppError(error)
  if (known.status !== 404) throw error
  return { units: [], next: null }
}

/** The labels of a snapshot of this name with its tag; none without one. */
export function labelsOf(reference: string | null | undefined): Record<string, string> {
  const [, name, tag = DEFAULT_TAG] = REFERENCE.exec(reference ?? '') ?? []
  return name === undefined ? {} : labelsWith(name, [tag])
}

export function labelsWith(name: string, tags: readonly string[]): Record<string, string> {
  return { [NAME]: name, ...Object.fromEntries(tags.map((tag) => [`${TAG}${tag}`, TAGGED])) }
}

/** A filter without a tag is for all tags. */
function asLabels(reference: string | undefined): Record<string, string> {
  const labels = labelsOf(reference)
  const { [NAME]: name } = labels
  return name === undefined || reference?.includes(':') ? labels : { [NAME]: name }
}

/** The name and the tag that a reference has; null if it is none. */
export function readReference(reference: string): { name: string; tag: string } | null {
  const [, name, tag = DEFAULT_TAG] = REFERENCE.exec(reference) ?? []
  return name === undefined ? null : { name, tag }
}

export function nameIn({ metadata }: Pick<Unit, 'metadata'>): string | undefined {
  return metadata[NAME]
}

export function tagsIn({ metadata }: Pick<Unit, 'metadata'>): string[] {
  return Object.keys(metadata).flatMap((label) => (label.startsWith(TAG) ? [label.slice(TAG.length)] : []))
}

function toSnapshot(unit: Unit): { snapshotID: string; names: string[] } {
  const name = nameIn(unit)
  return {
    snapshotID: sandboxIdOf(unit.id),
    names: name === undefined ? [] : tagsIn(unit).map((tag) => `${name}:${tag}`),
  }
}

/** What is still being built is none yet. */
function isSnapshot(unit: Unit): boolean {
  return Object.hasOwn(unit.metadata, SNAPSHOT_OF) && !isGone(unit)
}
