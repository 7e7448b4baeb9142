// What the files API writes a command reads, and what a command writes the files API reads, each time and to the
// byte, also with sleeps and stops between them (reliability I13). A sandbox that keeps a copy of a file would
// be found out.

import { describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { createUnit, type Exec } from '../support/berth-units.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { send } from '../support/patient-client.ts'
import { isDeep } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

/** A round is four alternations: a thousand of them in runc, two hundred in gVisor, where each costs more. */
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

/** Of every size around a page and some larger ones, in letters of one to four bytes. */
function contentOf(round: number, writer: string): string {
  const sizes = [0, 1, 100, 4095, 4096, 4097, 20_000]
  const letters = `${writer} ${round} äöü 漢字 🚢\n`
  return letters.repeat(Math.ceil((sizes[round % sizes.length] ?? 0) / letters.length))
}

async function alternate(unit: Unit, round: number): Promise<void> {
  // On the root and on the volume, in files that are written again and again and in new ones.
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

describe.each(Object.entries(ROUNDS))('in the class %s', (isolation, rounds) => {
  it('files and commands see each other’s last bytes, every time', { timeout: 300_000 }, async () => {
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
