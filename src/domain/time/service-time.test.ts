// For any jumps of the wall clock and any restarts, a unit sleeps and costs by the time that really passed: random
// histories are compared with a model that knows no wall clock. A test itself takes real time, so the model works
// with the spans in which events happened.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import type { App } from '../../app.ts'
import { isTransitional } from '../../contract/states.ts'
import type { Caller } from '../credentials/caller.ts'
import { destroyUnit } from '../units/destroy.ts'
import { execInUnit } from '../units/exec.ts'
import { getUnit } from '../units/get.ts'
import { sleepIdleUnits } from '../units/activity/idle.ts'
import { reconcileMachines, recover } from '../units/reconcile.ts'
import { adoptClockJump } from './clock-jumps.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const WINDOW_MS = 2 * MINUTE
const GRACE_MS = 30 * SECOND
/** Between two rounds of the jobs. */
const ROUND_MS = 10 * SECOND
/** A jump this short is followed without moving any times (lib/service-clock.ts). */
const FOLLOWED_MS = 2 * SECOND

let domain: TestDomain
beforeAll(async () => {
  domain = await createTestDomain()
})
afterAll(async () => await domain.close())

type Event =
  | { kind: 'use' }
  | { kind: 'pass' | 'jump'; ms: number }
  | { kind: 'restart' | 'reboot'; downMs: number; jumpMs: number }

const smallJump = fc.integer({ min: -10 * SECOND, max: 10 * SECOND })
const jumpMs = fc.oneof(fc.constantFrom(HOUR, -HOUR, 24 * HOUR, -24 * HOUR, 10 * MINUTE), smallJump)
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ kind: fc.constant('use' as const) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 150 * SECOND }) }),
  fc.record({ kind: fc.constant('jump' as const), ms: jumpMs }),
  fc.record({
    kind: fc.constantFrom('restart' as const, 'reboot' as const),
    downMs: fc.integer({ min: 0, max: 5 * MINUTE }),
    jumpMs: fc.oneof(fc.constant(0), jumpMs),
  }),
)

/** An event happened between the two, in service time. */
type Span = { from: number; to: number }
const between = (earlier: Span, later: Span): Span => ({
  from: Math.max(0, later.from - earlier.to),
  to: Math.max(0, later.to - earlier.from),
})
const later = (span: Span, ms: number): Span => ({ from: span.from + ms, to: span.to + ms })

/** All time that passed, without the jumps; it goes on over a reboot. */
let advancedMs = 0
const livedMs = () => performance.now() + advancedMs
const pass = (ms: number) => {
  advancedMs += ms
  domain.clock.advance(ms)
}
async function spanOf(work: () => Promise<unknown>): Promise<Span> {
  const from = livedMs()
  await work()
  return { from, to: livedMs() }
}

/** One unit, and what a model without a wall clock expects of it. */
class History {
  #app: App
  #caller: Caller
  #id = ''
  /** When it began to run, or null while it sleeps. */
  #since: Span | null = null
  #due: Span = { from: 0, to: 0 }
  /** The last heartbeat. */
  #seen: Span = { from: 0, to: 0 }
  #billed: Span = { from: 0, to: 0 }
  #slackMs = SECOND

  constructor(app: App, caller: Caller) {
    this.#app = app
    this.#caller = caller
  }

  get isAsleep(): boolean {
    return this.#since === null
  }

  async begin(): Promise<void> {
    const made = await spanOf(async () => {
      const unit = await makeUnit(this.#app, this.#caller, { sleep: '2m', size: 'small' })
      this.#id = unit.id
    })
    this.#since = made
    this.#due = later(made, WINDOW_MS)
    await this.#rounds()
  }

  async end(): Promise<void> {
    await destroyUnit(this.#app, this.#caller, this.#id)
  }

  async happen(event: Event): Promise<void> {
    switch (event.kind) {
      case 'use':
        await this.#use()
        break
      case 'pass':
        for (let leftMs = event.ms; leftMs > 0; leftMs -= ROUND_MS) {
          pass(Math.min(leftMs, ROUND_MS))
          await this.#rounds()
        }
        break
      case 'jump':
        this.#jump(event.ms)
        break
      case 'restart':
        await this.#restart(event)
        break
      case 'reboot':
        await this.#reboot(event)
    }
    await this.#checkBill()
  }

  #jump(ms: number): void {
    if (Math.abs(ms) <= 10 * SECOND) this.#slackMs += FOLLOWED_MS
    domain.clock.jump(ms)
  }

  async #use(): Promise<void> {
    const used = await spanOf(
      async () => await execInUnit(this.#app, this.#caller, this.#id, { cmd: ['true'], timeoutMs: SECOND }),
    )
    this.#since ??= used
    this.#due = later(used, WINDOW_MS)
  }

  /** Runs the jobs that act on time before the one that notices a clock jump. */
  async #rounds(): Promise<void> {
    const at = await spanOf(async () => {
      await sleepIdleUnits(this.#app)
      await expect.poll(() => this.#isPassing()).toBe(false)
      await reconcileMachines(this.#app)
    })
    this.#seen = at
    const isAsleep = (await this.#state()) === 'sleeping'
    if (this.#since === null) expect(isAsleep).toBe(true)
    else if (isAsleep) {
      expect(at.to, 'it slept too early').toBeGreaterThan(this.#due.from - this.#slackMs)
      this.#stopsRunning(at)
    } else expect(at.from, 'it should sleep').toBeLessThan(this.#due.to + this.#slackMs)
    await adoptClockJump(this.#app)
  }

  async #restart({ downMs, jumpMs }: { downMs: number; jumpMs: number }): Promise<void> {
    pass(downMs)
    this.#jump(jumpMs)
    this.#app = domain.restarted()
    const back = await spanOf(async () => await recover(this.#app))
    const away = between(this.#seen, back)
    const dueAt = (end: 'from' | 'to') =>
      Math.min(back[end] + WINDOW_MS, Math.max(this.#due[end] + away[end], back[end] + GRACE_MS))
    this.#due = { from: dueAt('from'), to: dueAt('to') }
    this.#seen = back
  }

  async #reboot({ downMs, jumpMs }: { downMs: number; jumpMs: number }): Promise<void> {
    domain.engine.loseMachine(this.#id)
    if (this.#since) this.#stopsRunning(this.#seen)
    domain.clock.reboot()
    await this.#restart({ downMs, jumpMs })
    expect(await this.#state()).toBe('sleeping')
  }

  #stopsRunning(at: Span): void {
    if (!this.#since) return
    const ran = between(this.#since, at)
    this.#billed = { from: this.#billed.from + ran.from, to: this.#billed.to + ran.to }
    this.#since = null
  }

  async #checkBill(): Promise<void> {
    let cents = 0
    const now = await spanOf(async () => {
      cents = (await getUnit(this.#app, this.#caller, this.#id)).costCentsSoFar
    })
    const runs = this.#since ? between(this.#since, now) : { from: 0, to: 0 }
    // Half a cent an hour.
    const billedMs = (cents / 0.5) * HOUR
    expect(billedMs).toBeGreaterThan(this.#billed.from + runs.from - this.#slackMs)
    expect(billedMs).toBeLessThan(this.#billed.to + runs.to + this.#slackMs)
  }

  async #state() {
    return (await getUnit(this.#app, this.#caller, this.#id)).state
  }

  async #isPassing(): Promise<boolean> {
    return isTransitional(await this.#state())
  }
}

it('a unit sleeps and costs by the time that passed, over random uses, clock jumps, restarts and reboots', async () => {
  let slept = 0
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 12 }), async (events) => {
      const app = domain.restarted()
      await recover(app)
      const history = new History(app, await domain.makeCaller())
      await history.begin()
      for (const event of events) {
        await history.happen(event)
        if (history.isAsleep) slept += 1
      }
      await history.end()
    }),
    { numRuns: 20 },
  )
  expect(slept).toBeGreaterThan(5)
}, 60_000)
