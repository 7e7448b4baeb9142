// The files API and commands always read each other's last bytes, also with sleeps and stops in between (reliability I13).
// This would detect a sandbox that caches files.

import { describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { createUnit, type Exec } from '../support/berth-units.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { send } from '../support/patient-client.ts'
import { isDeep } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

/** A round has four writes and reads: a thousand in total for runc and two hundred for gVisor, which is slower. */
const ROUNDS = isDeep ? { runc: 250, gvisor: 50 } : { runc: 60, gvisor: 40 }
const UNITS = 2
const SLEEP_EVERY = 8
const STOP_EVERY = 20

const berth = useBerth(null)

async function call<T>({ id }: Unit, method: string, path: string, body?: unknown): Promise<T> {
  const outcome = await send<T>(berth, { method, path: `/v1/units/${id}${path}`, body })
  if (outcome.kind !== 'answered' || outcome.status !== 200) throw new Error(JSON.stringify(outcome))
  return outcome.body
}

/** Sizes around a page and some larger ones, with characters of one to four bytes. */
function contentOf(round: number, writer: string): string {
  const sizes = [0, 1, 100, 4095, 4096, 4097, 20_000]
  const letters = `${writer} ${round} äöü 漢字 🚢\n`
  return letters.repeat(Math.ceil((sizes[round % sizes.length] ?? 0) / letters.length))
}

async function alternate(unit: Unit, round: number): Promise<void> {
  // On the root and on the volume, in files that are overwritten and in new ones.
  const path = [`/root/same`, `/data/same`, `/root/new-${round}`, `/data/new-${round}`][round % 4] ?? ''
  const query = new URLSearchParams({ path }).toString()
  const [byApi, byCommand] = [contentOf(round, 'api'), contentOf(round + 3, 'command')]
  await call(unit, 'PUT', `/files?${query}`, Buffer.from(byApi))
  const cmd = ['sh', '-c', 'cat "$0" && cat > "$0"', path]
  const { stdout, stderr } = await call<Exec>(unit, 'POST', '/exec', { cmd, stdin: byCommand })
  expect([stdout, stderr]).toEqual([byApi, ''])
  const { contentBase64 } = await call<{ contentBase64: string }>(unit, 'GET', `/files?${query}`)
  expect(Buffer.from(contentBase64, 'base64').toString()).toBe(byCommand)
}

async function pause(unit: Unit, round: number): Promise<void> {
  if (round % STOP_EVERY === 0) {
    await call(unit, 'POST', '/stop')
    await call(unit, 'POST', '/start')
  } else if (round % SLEEP_EVERY === 0) {
    await call(unit, 'POST', '/sleep', { sleep: '30m', now: true })
  }
}

describe.each(Object.entries(ROUNDS))('in %s machines', (isolation, rounds) => {
  it('the files API and commands always read each other’s last bytes', { timeout: 300_000 }, async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
    const spec = { image: 'berth.local/debian:12', size: 'small', volume: { mount: '/data', gb: 1 } }
    const names = Array.from({ length: UNITS }, (_, index) => `${isolation}-${index}`)
    const units = await Promise.all(names.map((name) => createUnit(berth, { ...spec, name })))
    await Promise.all(
      units.map(async (unit) => {
        for (let round = 1; round <= rounds / UNITS; round++) {
          await alternate(unit, round)
          await pause(unit, round)
        }
      }),
    )
    await expectInvariants(berth)
  })
})
