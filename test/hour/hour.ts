// The proof that what is billed is what ran: real units of both classes live for an hour on a Berth of their own, while
// parts of it are killed, and everything that says what they cost is compared with a stopwatch that only looked on.

import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../src/lib/free-port.ts'
import { createRandom } from '../simulation/random.ts'
import { createJournal, type Journal } from '../soak/journal.ts'
import { ask, type World } from '../soak/world.ts'
import { Berth, eventually, makeDataDir } from '../support/berth.ts'
import { clearHost } from '../support/power-cut.ts'
import { lives, ownUnits } from './lives.ts'
import { readBills, readSums } from './bills.ts'
import { createStopwatch, type Stopwatch } from './stopwatch.ts'
import { bringTrouble } from './troubles.ts'
import { judge, type Verdict } from './verdict.ts'

export type HourOptions = {
  seed: number
  forMs: number
  /** Ends the hour sooner, and in order. */
  stop: AbortSignal
  say: (line: string) => void
}

const SAY_EVERY_MS = 60_000
const classes = ['gvisor', 'runc'] as const

export async function runHour(options: HourOptions): Promise<{ journal: Journal; verdict: Verdict }> {
  const { say, seed, stop } = options
  const data = await makeDataDir()
  const journal = createJournal()
  const over = new AbortController()
  stop.addEventListener('abort', () => over.abort())
  // The same address over every restart, as callers know it.
  const address = `127.0.0.1:${await freePort('127.0.0.1')}`
  let starts = 0
  const restart = async () => {
    // New units get the other class from now on.
    const isolation = classes[starts++ % classes.length] ?? 'runc'
    const env = { BERTH_ISOLATION: isolation, BERTH_API_ADDRESS: address, BERTH_FROZEN_FOR: '20s' }
    return await new Berth(data.path).start(env)
  }
  const world: World = { berth: await restart(), journal, over: over.signal }
  say(`Berth runs on ${data.path}; the seed is ${seed}.`)
  let isRight = false
  try {
    const before = await readSums(world.berth)
    const seen = await spendTheHour(world, options, { restart, end: () => over.abort() })
    const bills = await readBills(world.berth, seen.volumes)
    const verdict = judge({ ...seen, bills, before, after: await readSums(world.berth) })
    isRight = journal.faults.length + verdict.faults.length === 0
    return { journal, verdict }
  } finally {
    over.abort()
    await leave(world, restart)
    if (isRight) await data.remove()
    else say(`What was logged is in ${data.path}/logs.`)
  }
}

type Control = { restart: () => Promise<Berth>; end: () => void }

async function spendTheHour(world: World, { seed, forMs, say }: HourOptions, { restart, end }: Control) {
  const volumes = new Map<string, number>()
  const stopwatch = createStopwatch(world)
  const watched = new AbortController()
  const watching = stopwatch.run(watched.signal)
  const living: Promise<void>[] = []
  try {
    for (const [index, isolation] of classes.entries()) {
      if (index > 0) {
        await world.berth.pressCtrlC()
        world.berth = await restart()
      }
      living.push(...beginLives(world, isolation, { seed: seed * 1000 + index * 100, volumes }))
      await eventually(async () => {
        const isMade = volumes.size >= (index + 1) * lives.length
        if (!isMade && !world.over.aborted) throw new Error('not all units have been made')
      }, 300_000)
    }
    say(`${volumes.size} units have been made; the time begins.`)
    const troubled = bringTrouble(world, stopwatch, { forMs, restart })
    const saying = sayProgress(world, stopwatch, say)
    await delay(forMs, undefined, { signal: world.over }).catch(() => {})
    end()
    await Promise.all([troubled, saying, ...living])
    say('The time is over. All units go.')
    await destroyAll(world)
    await eventually(async () => {
      const isOver = stopwatch.intervals().every(({ ended }) => ended !== null)
      if (!isOver) throw new Error('not everything was seen to end')
    }, 120_000)
    return { intervals: stopwatch.intervals(), units: stopwatch.units(), volumes }
  } finally {
    end()
    watched.abort()
    await Promise.all([watching, ...living])
  }
}

function beginLives(
  world: World,
  isolation: string,
  { seed, volumes }: { seed: number; volumes: Map<string, number> },
): Promise<void>[] {
  return lives.map(async (life, number) => {
    const random = createRandom(seed + number)
    try {
      await life.live(ownUnits(world, life, { suffix: isolation, random, volumes }))
    } catch (error) {
      if (!world.over.aborted) world.journal.fault(`${life.name} of ${isolation}: ${String(error)}`)
    }
  })
}

async function sayProgress(
  { journal, over }: World,
  stopwatch: Stopwatch,
  say: (line: string) => void,
): Promise<void> {
  const sinceMs = performance.now()
  while (!over.aborted) {
    await delay(SAY_EVERY_MS, undefined, { signal: over }).catch(() => {})
    const minutes = ((performance.now() - sinceMs) / 60_000).toFixed(1)
    const runs = stopwatch.intervals().filter(({ kind }) => kind === 'compute').length
    say(`${minutes} min: ${stopwatch.units().size} units, ${runs} runs seen, ${journal.progress()}`)
  }
}

async function destroyAll(world: World): Promise<void> {
  const listed = await ask<{ units: { id: string }[] }>(world, 'list', { method: 'GET', path: '/v1/units' })
  await Promise.all(
    (listed?.body.units ?? []).map(({ id }) =>
      ask(world, 'destroy', { method: 'DELETE', path: `/v1/units/${id}` }),
    ),
  )
}

/** However it ended: nothing of it stays on the host. */
async function leave(world: World, restart: () => Promise<Berth>): Promise<void> {
  const { journal } = world
  try {
    if (world.berth.hasEnded) world.berth = await restart()
    await destroyAll(world)
    await world.berth.pressCtrlC()
    const left = Object.entries(await world.berth.hostState()).filter(([, things]) => things.length > 0)
    if (left.length > 0) journal.fault(`left on the host: ${JSON.stringify(left)}`)
  } catch (error) {
    journal.fault(`it did not end in order: ${String(error)}`)
    await world.berth.pressCtrlC()
    await clearHost(await world.berth.instance(), world.berth.dataDir)
  }
}
