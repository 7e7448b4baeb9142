// Background jobs of images in the engine: out-of-date images are rebuilt, unused ones removed. They never touch an
// image that a unit uses.

import { randomInt } from 'node:crypto'
import { type Clock, HOUR, MINUTE } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { runLoop } from '../../../lib/loop.ts'
import { type Collected, type GarbageCollector, collectImages, type Limits } from './garbage-collection.ts'
import { refreshImages, type Refresher } from './refresh.ts'
import { type InstanceOnHost, registerInstance } from './instances.ts'

export type MaintenanceSettings = {
  /** How often Debian is asked for updates; null: never, and nothing is rebuilt automatically. */
  updatesEveryMs: number | null
  /** How long an unused image stays; null: none is removed automatically. */
  keepMs: number | null
}

const COLLECT_EVERY_MS = 5 * MINUTE
const REFRESH_EVERY_MS = 10 * MINUTE
/** A start has more urgent work, and hosts that start together must not ask at the same time. */
const REFRESH_AFTER_MS = { least: 2 * MINUTE, most: 10 * MINUTE }
/** Longer than all steps of an iteration together, each of which has its own timeout. */
const LONGEST_COLLECT_MS = HOUR
const LONGEST_REFRESH_MS = 2 * HOUR

export type Maintenance = {
  instance: InstanceOnHost
  settings: MaintenanceSettings
  reserveBytes: number
  clock: Clock
  log: Log
}

/** Runs until the signal of the refresher's builds aborts; resolves when the iterations in progress have ended. */
export async function runMaintenance(
  maintenance: Maintenance,
  { collector, refresher }: { collector: GarbageCollector; refresher: Refresher },
): Promise<void> {
  const { clock, log, settings } = maintenance
  const { signal } = refresher.building
  const loops: Promise<void>[] = []
  if (settings.keepMs !== null) {
    const limits = { keepMs: settings.keepMs, reserveBytes: maintenance.reserveBytes }
    let told = ''
    const run = async () => {
      const { unknown } = await collectRound(maintenance, collector, limits)
      const why = unknown.join(' ')
      if (why !== told && why !== '')
        log.warn({ why }, 'no image is removed, because not all machines are known')
      told = why
    }
    const loop = { name: 'collect images', everyMs: COLLECT_EVERY_MS, timeoutMs: LONGEST_COLLECT_MS, run }
    loops.push(runLoop(loop, { clock, log, signal }))
  }
  if (settings.updatesEveryMs !== null) {
    const everyMs = settings.updatesEveryMs
    const run = () => refreshImages(refresher, everyMs)
    const loop = { name: 'refresh images', everyMs: REFRESH_EVERY_MS, timeoutMs: LONGEST_REFRESH_MS, run }
    const firstMs = randomInt(REFRESH_AFTER_MS.least, REFRESH_AFTER_MS.most)
    const begin = clock.sleep(firstMs, signal).catch(() => {})
    loops.push(begin.then(() => runLoop(loop, { clock, log, signal })))
  }
  await Promise.all(loops)
}

async function collectRound(
  maintenance: Maintenance,
  collector: GarbageCollector,
  limits: Limits,
): Promise<Collected> {
  await registerInstance(collector.imagesDir, maintenance.instance, maintenance.clock)
  const collected = await collectImages(collector, limits)
  for (const { image } of collected.removed)
    maintenance.log.info({ image: image.reference, digest: image.digest }, 'unused image removed')
  return collected
}
