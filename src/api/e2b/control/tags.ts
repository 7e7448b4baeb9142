// Tags of a template: each leads to one of those that have the template's name.

import { z } from 'zod'
import { notFound } from '../../../contract/errors.ts'
import type { Unit } from '../../../contract/unit.ts'
import { sandboxIdOf } from '../sandbox-id.ts'
import { type ControlAnswer, type ControlCall, perform, readJson } from './call.ts'
import { destroyUnit } from './make.ts'
import { findSnapshot, findTagged, labelsWith, nameIn, REFERENCE, tagsIn } from './snapshots.ts'

const tagSchema = z.string().regex(/^[\w.-]{1,64}$/, 'must be a tag such as v1 or stable')
export const tagsSchema = z.array(tagSchema).max(16)
const someTags = tagsSchema.min(1, 'must name a tag')

/** The label with the id of the build that a template is of. */
export const BUILD = 'templateBuild'

/** POST /templates/tags: they lead to the target from now on, whatever they led to before. */
export async function assignTags(call: ControlCall): Promise<ControlAnswer> {
  const schema = z.object({
    target: z.string().regex(REFERENCE, 'must be the name of a template'),
    tags: someTags,
  })
  const { target, tags } = await readJson(call, schema)
  const found = await findSnapshot(call, target)
  const name = found === null ? undefined : nameIn(found)
  if (found === null || name === undefined) throw notFound('template', target)
  await takeTags(call, name, tags, found.id)
  await label(call, found, labelsWith(name, [...tagsIn(found), ...tags]))
  return { status: 201, body: { buildID: buildOf(found), tags } }
}

/** DELETE /templates/tags: a template without a tag is none any more. */
export async function removeTags(call: ControlCall): Promise<ControlAnswer> {
  const schema = z.object({
    name: z.string().regex(REFERENCE, 'must be the name of a template'),
    tags: someTags,
  })
  const { name, tags } = await readJson(call, schema)
  const known = (await findTagged(call, name)).flatMap(tagsIn)
  const unknown = tags.find((tag) => !known.includes(tag))
  if (unknown !== undefined) throw notFound('tag', unknown)
  await takeTags(call, name, tags, null)
  return { status: 204, body: null }
}

/** GET /templates/{id}/tags. */
export async function listTags(call: ControlCall, name: string): Promise<ControlAnswer> {
  const found = await findTagged(call, name)
  if (found.length === 0) throw notFound('template', name)
  const body = found.flatMap((unit) =>
    tagsIn(unit).map((tag) => ({ tag, buildID: buildOf(unit), createdAt: unit.createdAt })),
  )
  return { status: 200, body }
}

/** Takes tags away from all of a name but one, and removes what has none left. */
export async function takeTags(
  call: ControlCall,
  name: string,
  tags: readonly string[],
  keeper: string | null,
): Promise<void> {
  for (const unit of await findTagged(call, name)) {
    const left = tagsIn(unit).filter((tag) => !tags.includes(tag))
    if (unit.id === keeper || left.length === tagsIn(unit).length) continue
    if (left.length === 0) await destroyUnit(call, unit.id)
    else await label(call, unit, labelsWith(nameIn(unit) ?? name, left))
  }
}

/** Its other labels stay. */
async function label(call: ControlCall, unit: Unit, labels: Record<string, string>): Promise<void> {
  const own = Object.entries(unit.metadata).filter(([key]) => !isOfTags(unit, key))
  const body = { metadata: { ...Object.fromEntries(own), ...labels } }
  await perform(call, { route: 'PATCH /v1/units/{id}', input: { params: { id: unit.id }, body } })
}

function isOfTags(unit: Unit, key: string): boolean {
  return Object.hasOwn(labelsWith(nameIn(unit) ?? '', tagsIn(unit)), key)
}

function buildOf({ id, metadata }: Unit): string {
  return metadata[BUILD] ?? sandboxIdOf(id)
}
