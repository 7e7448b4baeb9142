// Hosted agents in the server: it runs a controller (packages/agents) for each environment that is on. A controller is
// a client of this service's own API like any other, with the key of its environment, so that policies, rates, charges and the
// audit log apply to it as they do to the CLI's. What it tells is written down for people.

import { randomUUID } from 'node:crypto'
import type { App } from '../app.ts'
import { cleanLine } from '../contract/fields.ts'
import type { HostedState } from '../contract/hosted-agents.ts'
import { listOn, openServed, type Served } from '../domain/hosted-agents/served.ts'
import { beginHosted, tellHostedSession, tellHostedState } from '../domain/hosted-agents/tell.ts'
import { MINUTE, SECOND } from '../lib/clock.ts'
import { runLoop } from '../lib/loop.ts'
import { type EnvironmentOptions, serveEnvironment } from '../../packages/agents/src/environment.ts'
import { type News, QueueRefused } from '../../packages/agents/src/queue.ts'
import { type VendorName, vendors } from '../../packages/agents/src/vendors.ts'
import { Berth, version } from '../../packages/sdk/src/index.ts'

export type HostedOptions = {
  /** Of this service's API. */
  url: string
  /** In place of the vendors' own; null: that one. */
  vendorUrls: Record<VendorName, string | null>
  /** Where the controllers may write. */
  workDir: string
  /** For tests. */
  timing?: Pick<EnvironmentOptions, 'idleMs' | 'reclaimMs' | 'strandedMs' | 'pauses'>
}

type Running = { version: number; gone: AbortController; done: Promise<void> }

const LOOK_MS = 2 * SECOND
/** For one look. */
const TIMEOUT_MS = MINUTE
/** What no repetition changes may change at the vendor: it is asked again, but rarely. */
const REFUSED_MS = 10 * MINUTE
const FAILED_MS = MINUTE
const MAX_NOTE = 400

/** `stop` resolves when every controller has ended; their work goes back to the vendor's queues. */
export function serveHostedAgents(app: App, options: HostedOptions): { stop: () => Promise<void> } {
  const { clock, log } = app
  const stopped = new AbortController()
  const running = new Map<string, Running>()

  const begin = (served: Served) => {
    const gone = new AbortController()
    const { id, version: of } = served
    const done = serveUntil(app, options, served, gone.signal)
      .catch((error: unknown) => log.error({ err: error, environment: id }, 'a controller has failed'))
      .finally(() => running.delete(id))
    running.set(id, { version: of, gone, done })
  }
  const look = async () => {
    const on = new Map((await listOn(app)).map((row) => [row.id, row]))
    for (const [id, one] of running) if (on.get(id)?.version !== one.version) one.gone.abort()
    // One that was changed begins once it has ended as it was.
    for (const [id, row] of on) if (!running.has(id)) begin(openServed(app, row))
  }
  const loop = { name: 'serve hosted agents', everyMs: LOOK_MS, timeoutMs: TIMEOUT_MS, run: look }
  const looking = runLoop(loop, { clock, log, signal: stopped.signal })
  return {
    stop: async () => {
      stopped.abort()
      await looking
      for (const { gone } of running.values()) gone.abort()
      await Promise.all([...running.values()].map(({ done }) => done))
    },
  }
}

/** Serves an environment until the signal aborts, also again after it was refused. */
async function serveUntil(
  app: App,
  options: HostedOptions,
  served: Served,
  signal: AbortSignal,
): Promise<void> {
  await beginHosted(app, served)
  const { tell, written } = createTelling(app, served)
  while (!signal.aborted) {
    try {
      await serveEnvironment(environmentOptions(options, served, tell, signal))
    } catch (error) {
      if (signal.aborted) break
      const { state, sentence, againMs } = endOf(error)
      if (state === 'failing') app.log.error({ err: error, environment: served.id }, 'a controller has ended')
      await written()
      await tellHostedState(app, served, { state, note: cleaned(sentence, served) })
      await app.clock.sleep(againMs, signal).catch(() => {})
    }
  }
  await written()
}

function environmentOptions(
  { url, vendorUrls, workDir, timing }: HostedOptions,
  { vendor, environment, environmentKey, token, plan: { atOnce, ...plan } }: Served,
  tell: (news: News) => void,
  signal: AbortSignal,
): EnvironmentOptions {
  const vendorUrl = vendorUrls[vendor]
  return {
    open: vendors[vendor].open,
    environmentId: environment,
    environmentKey,
    ...(vendorUrl !== null && { url: vendorUrl }),
    workDir,
    workerId: `berth-${randomUUID()}`,
    connect: (userAgent) => new Berth({ url, apiKey: token, userAgent }),
    version,
    plan: { ...plan, stack: 'agents' },
    atOnce,
    tell,
    signal,
    ...timing,
  }
}

type End = { state: HostedState; sentence: string; againMs: number }

function endOf(error: unknown): End {
  const refused = (sentence: string): End => ({ state: 'refused', sentence, againMs: REFUSED_MS })
  if (error instanceof QueueRefused) return refused(error.message)
  const sentence = error instanceof Error ? error.message : 'The controller has ended.'
  return { state: 'failing', sentence, againMs: FAILED_MS }
}

/** News are written one after the other. */
function createTelling(app: App, served: Served) {
  let last: Promise<void> = Promise.resolve()
  const tell = (news: News) => {
    last = last
      .then(async () => await write(app, served, news))
      .catch((error: unknown) => app.log.warn({ err: error, environment: served.id }, 'news were lost'))
  }
  return { tell, written: async () => await last }
}

const states = {
  asked: 'waiting',
  left: 'waiting',
  begun: 'waiting',
  failing: 'failing',
  full: 'full',
} as const
const sessionStates = { begun: 'working', over: 'waiting', refused: 'refused', ended: 'ended' } as const

async function write(
  app: App,
  served: Served,
  { kind, session, sentence, unitId, why }: News,
): Promise<void> {
  const said = cleaned(why ?? sentence, served)
  if (kind in states) {
    const state = states[kind as keyof typeof states]
    // It is at work, and people know what it leaves, until there is something newer.
    const note = state === 'waiting' && kind !== 'left' ? null : said
    await tellHostedState(app, served, { state, note })
  }
  if (session !== null && kind in sessionStates) {
    const state = sessionStates[kind as keyof typeof sessionStates]
    const note = state === 'refused' || (kind === 'begun' && why !== undefined) ? said : null
    await tellHostedSession(app, served, { session, state, note, unitId: unitId ?? null })
  }
}

/** A vendor's answer may repeat what it was asked with. */
function cleaned(sentence: string, { environmentKey, token }: Served): string {
  return cleanLine(sentence.replaceAll(environmentKey, '…').replaceAll(token, '…'), MAX_NOTE)
}
