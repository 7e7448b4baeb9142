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

/** `leaving`: it was changed, and another one follows, which knows what of it is under way. */
type Running = {
  id: string
  version: number
  gone: AbortController
  leaving: AbortController
  underWay: Set<string>
  done: Promise<void>
}

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
  const running = new Set<Running>()

  const begin = (served: Served) => {
    const { id, version: of } = served
    const before = [...running].find((one) => one.id === id)
    const [gone, leaving] = [new AbortController(), new AbortController()]
    const underWay = before?.underWay ?? new Set()
    const turn = { signal: gone.signal, leaving: leaving.signal, underWay }
    const done = serveUntil(app, options, { served, turn, follows: before !== undefined })
      .catch((error: unknown) => log.error({ err: error, environment: id }, 'a controller has failed'))
      .finally(() => running.delete(one))
    const one: Running = { id, version: of, gone, leaving, underWay, done }
    running.add(one)
  }
  const look = async () => {
    const on = new Map((await listOn(app)).map((row) => [row.id, row]))
    for (const { id, version: of, gone, leaving } of running) {
      if (!on.has(id)) gone.abort()
      else if (on.get(id)?.version !== of) leaving.abort()
    }
    const isServed = ({ id, version: of }: { id: string; version: number }) =>
      // One that is on again begins once it has ended as it was.
      [...running].some((one) => one.id === id && (one.version === of || one.gone.signal.aborted))
    for (const row of on.values()) if (!isServed(row)) begin(openServed(app, row))
  }
  const loop = { name: 'serve hosted agents', everyMs: LOOK_MS, timeoutMs: TIMEOUT_MS, run: look }
  const looking = runLoop(loop, { clock, log, signal: stopped.signal })
  return {
    stop: async () => {
      stopped.abort()
      await looking
      for (const { gone } of running) gone.abort()
      await Promise.all([...running].map(({ done }) => done))
    },
  }
}

type Turn = { signal: AbortSignal; leaving: AbortSignal; underWay: Set<string> }

/** Serves an environment until its turn is over, also again after it was refused. */
async function serveUntil(
  app: App,
  options: HostedOptions,
  { served, turn, follows }: { served: Served; turn: Turn; follows: boolean },
): Promise<void> {
  const over = AbortSignal.any([turn.signal, turn.leaving])
  if (!follows) await beginHosted(app, served)
  const { tell, written } = createTelling(app, served)
  while (!over.aborted) {
    try {
      await serveEnvironment(environmentOptions(options, served, tell, turn))
    } catch (error) {
      if (over.aborted) break
      const { state, sentence, againMs } = endOf(error)
      if (state === 'failing') app.log.error({ err: error, environment: served.id }, 'a controller has ended')
      await written()
      await tellHostedState(app, served, { state, note: cleaned(sentence, served) })
      await app.clock.sleep(againMs, over).catch(() => {})
    }
  }
  await written()
}

function environmentOptions(
  { url, vendorUrls, workDir, timing }: HostedOptions,
  { vendor, environment, environmentKey, token, plan: { atOnce, ...plan } }: Served,
  tell: (news: News) => void,
  turn: Turn,
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
    ...turn,
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
