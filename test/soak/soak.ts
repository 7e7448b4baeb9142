// The demonstration: a mixed load from several callers, in both classes, while engine, server, gateway, Postgres,
// monitors and sandboxes are killed at random (reliability F4). In the end every acknowledged file exists, no unit is
// stuck, the host is as the database says and, once all is destroyed, as it was before.

import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../src/lib/free-port.ts'
import { createRandom } from '../simulation/random.ts'
import { Berth, eventually, makeDataDir } from '../support/berth.ts'
import { findDifferences } from '../support/host-invariants.ts'
import { createJournal, type Journal } from './journal.ts'
import { killAtRandom } from './killer.ts'
import { createOwner } from './owner.ts'
import { createPair } from './pair.ts'
import { watchStates } from './watch.ts'
import { ask, type World } from './world.ts'

export type SoakOptions = {
  seed: number
  forMs: number
  owners: number
  /** The least and the longest pause between two kills. */
  pauseMs: [number, number]
  say: (line: string) => void
}

const SAY_EVERY_MS = 15_000
/** Enough for the reconciler and what it waits for. */
const SETTLE_MS = 90_000

/** The journal has no faults when all is well. */
export async function soak(options: SoakOptions): Promise<Journal> {
  const { say, forMs } = options
  const data = await makeDataDir()
  const journal = createJournal()
  const over = new AbortController()
  // The same address over every restart, as callers know it.
  const address = `127.0.0.1:${await freePort('127.0.0.1')}`
  const classes = ['gvisor', 'runc']
  const restart = async () => {
    // New units get the other class from now on.
    const [isolation = 'runc'] = classes.splice(0, 1)
    classes.push(isolation)
    const env = { BERTH_ISOLATION: isolation, BERTH_API_ADDRESS: address, BERTH_FROZEN_FOR: '20s' }
    return await new Berth(data.path).start(env)
  }
  const world: World = { berth: await restart(), journal, over: over.signal }
  say(`Berth runs on ${data.path}; the seed is ${options.seed}.`)

  const callers = await begin(world, options, restart)
  const killing = killAtRandom(world, createRandom(options.seed), { pauseMs: options.pauseMs, restart })
  const watching = watchStates(world)
  const saying = sayProgress(world, say)
  await delay(forMs)
  over.abort()
  await Promise.all([killing, watching, saying, ...callers.map(({ running }) => running)])

  say('No more is killed. Reading everything back.')
  await Promise.all(callers.map(({ verify }) => verify()))
  await expectSettled(world, 'after the last kill')
  await leave(world)
  if (journal.faults.length === 0) await data.remove()
  else say(`What was logged is in ${data.path}/logs.`)
  return journal
}

type Caller = { running: Promise<void>; verify: () => Promise<void> }

/** Half of the units are of one class, and half of the other. */
async function begin(
  world: World,
  { owners, seed }: SoakOptions,
  restart: () => Promise<Berth>,
): Promise<Caller[]> {
  const all: Caller[] = []
  for (const half of [0, 1]) {
    if (half === 1) {
      await world.berth.pressCtrlC()
      world.berth = await restart()
    }
    const random = (number: number) => createRandom(seed * 1000 + half * 100 + number)
    const some = Array.from({ length: Math.ceil(owners / 2) }, (_, number) =>
      createOwner(world, `owner-${half}-${number}`, random(number)),
    )
    const begun = [...some, createPair(world, `shop-${half}`, random(99))]
    all.push(...begun.map(({ run, verify }) => ({ running: run(), verify })))
    // The first units exist before the class changes.
    await delay(3000)
  }
  return all
}

async function sayProgress({ journal, over }: World, say: (line: string) => void): Promise<void> {
  const since = Date.now()
  while (!over.aborted) {
    await delay(SAY_EVERY_MS, undefined, { signal: over }).catch(() => {})
    say(`${((Date.now() - since) / 1000).toFixed(0)} s: ${journal.progress()}`)
  }
}

async function expectSettled({ berth, journal }: World, when: string): Promise<void> {
  try {
    await eventually(async () => {
      const differences = await findDifferences(berth)
      if (differences.length > 0) throw new Error(differences.join('; '))
    }, SETTLE_MS)
  } catch (error) {
    journal.fault(`${when} the host is not as the database says: ${String(error)}`)
  }
}

/** Destroys everything and stops Berth; nothing must be left on the host. */
async function leave(world: World): Promise<void> {
  const { berth, journal } = world
  const listed = await ask<{ units: { id: string }[] }>(world, 'list', { method: 'GET', path: '/v1/units' })
  await Promise.all(
    (listed?.body.units ?? []).map(({ id }) =>
      ask(world, 'destroy', { method: 'DELETE', path: `/v1/units/${id}` }),
    ),
  )
  await expectSettled(world, 'with everything destroyed')
  await berth.pressCtrlC()
  const left = Object.entries(await berth.hostState()).filter(([, things]) => things.length > 0)
  if (left.length > 0) journal.fault(`left on the host: ${JSON.stringify(left)}`)
}
