// Trees of files in a unit, on its root and on its volume, of whatever a file system can hold (tree.py), and one
// line that tells whether anything in them has changed.

import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import type { Berth } from './berth.ts'
import { createUnit, type Exec } from './berth-units.ts'
import { callPatiently } from './patient-client.ts'

const ROOTS = ['/srv/tree', '/data/tree']
const SCRIPT = '/root/tree.py'

/** A unit with a volume and room for Python, its trees still empty. */
export async function createUnitWithTrees(
  berth: Berth,
  name: string,
  spec: Record<string, unknown> = {},
): Promise<Unit> {
  const image = 'berth.local/python:3.11'
  const unit = await createUnit(berth, { name, image, volume: { mount: '/data', gb: 1 }, ...spec })
  await putFile(berth, unit, SCRIPT, await readFile(new URL('tree.py', import.meta.url)))
  await runInUnit(berth, unit, ['mkdir', ...ROOTS])
  return unit
}

/** Adds to both trees, by the files API and by a command, part of whose writing is never synced. Answers their hash. */
export async function growTrees(
  berth: Berth,
  unit: Unit,
  { seed, pipes }: { seed: number; pipes: boolean },
): Promise<string> {
  for (const root of ROOTS) {
    await putFile(berth, unit, `${root}/put-${seed} ü`, Buffer.from(`put ${seed} `.repeat(1000 * (seed % 7))))
  }
  return await runInUnit(berth, unit, ['python3', SCRIPT, String(seed), pipes ? 'yes' : 'no', ...ROOTS])
}

/** Wakes the unit for it. */
export async function hashTrees(berth: Berth, unit: Unit): Promise<string> {
  return await runInUnit(berth, unit, ['python3', SCRIPT, '', '', ...ROOTS])
}

async function runInUnit(berth: Berth, { id }: Unit, cmd: string[]): Promise<string> {
  const path = `/v1/units/${id}/exec`
  const { status, body } = await callPatiently<Exec>(berth, { method: 'POST', path, body: { cmd } })
  expect([status, body.exitCode, body.stderr], JSON.stringify(body)).toEqual([200, 0, ''])
  return body.stdout
}

async function putFile(berth: Berth, { id }: Unit, path: string, content: Buffer): Promise<void> {
  const query = new URLSearchParams({ path }).toString()
  const call = { method: 'PUT', path: `/v1/units/${id}/files?${query}`, body: content }
  const { status, body } = await callPatiently<{ verified: boolean }>(berth, call)
  expect([status, body.verified], JSON.stringify(body)).toEqual([200, true])
}
