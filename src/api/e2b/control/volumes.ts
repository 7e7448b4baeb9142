// A volume is a unit of a stack of its own, of which clients see one directory. It sleeps when nothing asks for its files, and
// costs what such a unit costs. No sandbox mounts it: units share no disk.

import { z } from 'zod'
import { conflict, notFound } from '../../../contract/errors.ts'
import { limits } from '../../../contract/limits.ts'
import type { Unit, UnitList } from '../../../contract/unit.ts'
import { unitTokenOf } from '../../../domain/credentials/unit-token.ts'
import { getUnit } from '../../../domain/units/get.ts'
import { SECOND } from '../../../lib/clock.ts'
import { sandboxIdOf, unitIdOf } from '../sandbox-id.ts'
import { VOLUME_ROOT } from '../volume/paths.ts'
import { type ControlAnswer, type ControlCall, perform, readJson } from './call.ts'
import { createUnit, newName } from './make.ts'
import { isGone, nullIfHidden, VOLUME_NAME } from './sandbox.ts'
import { noneWithoutStack } from './snapshots.ts'
import { DEFAULT_TEMPLATE, imageOf } from './templates.ts'

const VOLUME_STACK = 'sandbox-volumes'
const SLEEPS_AFTER = '5m'
/** Clients wait a minute, and say nothing of why. */
const WAIT_MS = 50 * SECOND

const createSchema = z.object({
  name: z.string().regex(/^[A-Za-z0-9][\w.-]{0,127}$/, 'must be a name such as my-volume'),
})

export async function createVolume(call: ControlCall): Promise<ControlAnswer> {
  const { name } = await readJson(call, createSchema)
  if ((await listOf(call)).some((unit) => nameOf(unit) === name))
    throw conflict(`There is a volume "${name}" already.`)
  const spec = {
    name: newName('volume'),
    image: imageOf(DEFAULT_TEMPLATE),
    sleep: SLEEPS_AFTER,
    metadata: { [VOLUME_NAME]: name },
    egress: { mode: 'none', siblings: 'none' },
  }
  const unit = await createUnit(call, () => ({ stack: VOLUME_STACK, spec }), WAIT_MS)
  const input = { params: { id: unit.id }, body: { path: VOLUME_ROOT } }
  await perform(call, { route: 'POST /v1/units/{id}/directory', input })
  return { status: 201, body: toAccess(call, unit) }
}

export async function listVolumes(call: ControlCall): Promise<ControlAnswer> {
  return { status: 200, body: (await listOf(call)).map(toShown) }
}

export async function getVolume(call: ControlCall, volumeId: string): Promise<ControlAnswer> {
  const unit = (await ofVolume(call, volumeId, 'GET /v1/units/{id}')) as Unit
  return { status: 200, body: toAccess(call, unit) }
}

export async function deleteVolume(call: ControlCall, volumeId: string): Promise<ControlAnswer> {
  await ofVolume(call, volumeId, 'DELETE /v1/units/{id}')
  return { status: 204, body: null }
}

async function listOf(call: ControlCall): Promise<Unit[]> {
  const input = { query: { stack: VOLUME_STACK, limit: String(limits.pageSize.max) } }
  const listed = await perform(call, { route: 'GET /v1/units', input })
    .then((list) => list as UnitList)
    .catch(noneWithoutStack)
  return listed.units.filter(isVolume)
}

/** Throws `not_found` also for one of another team, and for what is no volume. */
async function ofVolume(call: ControlCall, volumeId: string, route: string): Promise<unknown> {
  const { app, sender } = call
  const unitId = unitIdOf(volumeId)
  return await perform(call, {
    route,
    input: async () => {
      const unit = unitId === null ? null : await getUnit(app, sender.caller, unitId).catch(nullIfHidden)
      if (unit === null || !isVolume(unit)) throw notFound('volume', volumeId)
      return { params: { id: unit.id } }
    },
  })
}

export function isVolume(unit: Pick<Unit, 'metadata' | 'state'>): boolean {
  return Object.hasOwn(unit.metadata, VOLUME_NAME) && !isGone(unit)
}

function nameOf({ metadata }: Pick<Unit, 'metadata'>): string {
  return metadata[VOLUME_NAME] ?? ''
}

function toShown(unit: Unit): { volumeID: string; name: string } {
  return { volumeID: sandboxIdOf(unit.id), name: nameOf(unit) }
}

/** The token is worth nothing for any other unit. */
function toAccess({ app, sender }: ControlCall, unit: Unit): object {
  const { credentialId } = sender.caller
  return { ...toShown(unit), token: unitTokenOf(app, { unitId: unit.id, credentialId }) }
}
