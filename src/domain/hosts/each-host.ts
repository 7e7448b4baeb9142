// Work of the background jobs on each host.

import type { App } from '../../app.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import { noteFailureOf } from '../time/heartbeat.ts'

/** The work on a host that is slow goes on by itself, and the next round of the others does not wait for it. */
const WAIT_MS = 5 * SECOND
/** After this another round begins although the last one has not ended. */
const LONGEST_MS = 2 * MINUTE

/**
 * Works on all hosts at once. Throws what fails on the server's own host, as on a single host; what fails on another one
 * is logged, and the next round tries again.
 */
export async function onEachHost(
  app: App,
  what: string,
  work: (host: FleetHost) => Promise<void>,
): Promise<void> {
  const local = app.fleet.findLocal()
  const others = app.fleet.hosts().filter((host) => host !== local)
  if (local && others.length === 0) return await work(local)
  const beside = others
    .filter(({ awaySince }) => awaySince === null)
    .map((host) => workBeside(app, what, host, work))
  await Promise.all([
    ...(local ? [completesWithin(app.clock, WAIT_MS, once(app, what, local, work))] : []),
    completesWithin(app.clock, WAIT_MS, Promise.all(beside)),
  ])
}

async function workBeside(
  app: App,
  what: string,
  host: FleetHost,
  work: (host: FleetHost) => Promise<void>,
): Promise<void> {
  try {
    await once(app, what, host, work)
  } catch (error) {
    noteFailureOf(app, host, error)
    app.log.warn({ err: error, host: host.name, what }, 'work on a host failed; will be retried')
  }
}

/** Joins the round that is in progress. */
async function once(
  app: App,
  what: string,
  host: FleetHost,
  work: (host: FleetHost) => Promise<void>,
): Promise<void> {
  await app.activity.operations.run(`${what} ${host.id}`, LONGEST_MS, () => work(host))
}
