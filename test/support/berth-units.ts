// Units over HTTP, as an agent handles them.

import { expect } from 'vitest'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Berth } from './berth.ts'

/** Whatever answers calls of one team. */
export type Service = Pick<Berth, 'call'>

export type Exec = { exitCode: number; stdout: string; stderr: string; timedOut: boolean; truncated: boolean }

/** Waits for it to run; the first unit of an image waits for the image to be built. */
export async function createUnit(
  berth: Service,
  spec: Record<string, unknown>,
  stack?: string,
): Promise<Unit> {
  const body = { spec, waitTimeoutMs: 300_000, ...(stack === undefined ? {} : { stack }) }
  const answer = await berth.call<RunResult>('POST', '/v1/units', body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  const [unit] = answer.body.units
  if (!unit) throw new Error('a create answered no unit')
  expect(unit.state).toBe('running')
  return unit
}

export async function exec(berth: Service, unit: Unit, cmd: string[]): Promise<Exec> {
  const answer = await berth.call<Exec>('POST', `/v1/units/${unit.id}/exec`, { cmd })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body
}

export async function listUnits(berth: Service): Promise<Unit[]> {
  const answer = await berth.call<{ units: Unit[] }>('GET', '/v1/units')
  expect(answer.status).toBe(200)
  return answer.body.units
}

export async function destroyAll(berth: Service): Promise<void> {
  for (const unit of await listUnits(berth)) {
    expect((await berth.call('DELETE', `/v1/units/${unit.id}`)).status).toBe(200)
  }
}
