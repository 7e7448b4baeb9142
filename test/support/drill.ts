// Crash drills on one data directory: a Berth that is started anew for each few of them, units with a file that must
// survive, and the calls of somebody who tries again as a sane caller does.

import { expect } from 'vitest'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { Berth, type DataDir, makeDataDir } from './berth.ts'
import { createUnit, destroyAll, listUnits } from './berth-units.ts'
import { removeOrClear } from './clear-host.ts'
import { expectInvariants } from './host-invariants.ts'
import { killSupervisor } from './kill.ts'
import { type Call, callPatiently, type Reply } from './patient-client.ts'
import { takeOffHost } from './use-berth.ts'

/** Where a crash, and what follows from it, must have ended (reliability F1). */
export const WITHIN_MS = 60_000

const specOf = (name: string) => ({ name, image: 'berth.local/debian:12', size: 'nano' })
const markOf = ({ id }: Unit) => `/v1/units/${id}/files?path=/root/mark`

export class Drill {
  #data: DataDir | null = null
  #berth: Berth | null = null
  #named = 0

  get berth(): Berth {
    if (!this.#berth) throw new Error('the drill has not begun')
    return this.#berth
  }

  /** The next life of Berth on the same data, begun by the sudden end of the one before. */
  async startAnew(env: Record<string, string>): Promise<void> {
    this.#data ??= await makeDataDir()
    if (this.#berth) await killSupervisor(this.#berth)
    this.#berth = await new Berth(this.#data.path).start({ BERTH_FAILPOINTS: 'on', ...env })
  }

  /** Everything ends well, and nothing is left. */
  async close(): Promise<void> {
    await removeOrClear(this.berth.dataDir, async () => {
      await destroyAll(this.berth)
      await expectInvariants(this.berth)
      await takeOffHost(this.berth)
      await this.#data?.remove()
    })
  }

  newName(): string {
    this.#named += 1
    return `unit-${this.#named}`
  }

  /** A running unit with a file of its own. */
  async makeUnit(spec: Record<string, unknown> = {}): Promise<Unit> {
    const unit = await createUnit(this.berth, { ...specOf(this.newName()), ...spec })
    const body = Buffer.from(unit.name)
    expect((await this.call({ method: 'PUT', path: markOf(unit), body })).status).toBe(200)
    return unit
  }

  /** Wakes or starts it for that. */
  async expectFiles(unit: Unit): Promise<void> {
    expect((await this.act(unit, 'start')).status).toBe(200)
    const { body } = await this.call<{ contentBase64: string }>({ method: 'GET', path: markOf(unit) })
    expect(Buffer.from(body.contentBase64, 'base64').toString()).toBe(unit.name)
  }

  /** Under a key of its own, so that it makes one unit however often it is sent. */
  create(name: string): Promise<Reply<RunResult>> {
    const body = { spec: specOf(name), stack: name }
    return this.call({ method: 'POST', path: '/v1/units', body, headers: { 'idempotency-key': name } })
  }

  /** Under a key of its own, so that it is made once however often it is sent. */
  fork(source: string, body: Record<string, unknown>): Promise<Reply<ForkResult>> {
    const key = JSON.stringify([source, body])
    return this.call({
      method: 'POST',
      path: `/v1/${source}/fork`,
      body,
      headers: { 'idempotency-key': key },
    })
  }

  async named(names: string[]): Promise<Unit[]> {
    return (await listUnits(this.berth)).filter(({ name }) => names.includes(name))
  }

  async get({ id }: Unit): Promise<Unit> {
    return (await this.call<Unit>({ method: 'GET', path: `/v1/units/${id}` })).body
  }

  act(unit: Unit, action: string, body?: unknown): Promise<Reply<Unit>> {
    return this.call({ method: 'POST', path: `/v1/units/${unit.id}/${action}`, body })
  }

  sleepNow(unit: Unit): Promise<Reply<unknown>> {
    return this.act(unit, 'sleep', { sleep: '30m', now: true })
  }

  async expectDestroys(units: Unit[]): Promise<void> {
    const calls = units.map(({ id }) => this.call<Unit>({ method: 'DELETE', path: `/v1/units/${id}` }))
    for (const { status, body } of await Promise.all(calls)) {
      expect([status, body.state]).toEqual([200, 'destroyed'])
    }
  }

  call<T>(call: Call): Promise<Reply<T>> {
    return callPatiently(this.berth, call, WITHIN_MS)
  }
}
