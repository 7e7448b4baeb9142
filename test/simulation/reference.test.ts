// The reference model finds each fault that it is there for. Without that, a run without faults proves nothing.

import { beforeEach, describe, expect, it } from 'vitest'
import { invalidState, notFound } from '../../src/contract/errors.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import type { Call } from './calls.ts'
import { createLife } from './gates.ts'
import { createReference, type Reference } from './reference.ts'
import { createRegister } from './register.ts'
import type { Seen } from './seen.ts'

const BEGINNING = Date.UTC(2030, 4, 15)
let nowMs: number
let reference: Reference

beforeEach(() => {
  nowMs = BEGINNING
  reference = createReference({
    nowMs: () => nowMs,
    elapsedMs: () => nowMs,
    hasJumped: () => false,
    maxConcurrentUnits: new Map([['key', 1]]),
    atWorkIn: () => 0,
    isCalm: () => true,
  })
})

let unit: Seen
/** Shows the unit to the reference as it is one second later. */
function see(change: Partial<Seen>): void {
  nowMs += SECOND
  unit = { ...unit, changedAt: new Date(nowMs), ...change }
  reference.seen([unit])
}

function seeCreating(): void {
  unit = {
    id: 'unit',
    state: 'creating',
    generation: 1,
    reason: null,
    heldBy: 'key',
    frozen: false,
    sleep: '1m',
    sleepsAt: null,
    forkId: null,
    forkedFrom: null,
    isSick: false,
    changedAt: new Date(nowMs),
    runs: [],
    wholeAt: null,
    charged: 0n,
    hostId: 'host_1',
    size: 'small',
    hasVolume: false,
  }
  reference.seen([unit])
}

function seeRunning(): void {
  seeCreating()
  see({ state: 'running', runs: [{ from: new Date(nowMs + SECOND), to: null }] })
}

/** The reference sees a heartbeat of a complete server now. */
function seeBeat(): number {
  const atMs = nowMs
  see({ wholeAt: new Date(atMs) })
  return atMs
}

const endedAt = (ms: number) => unit.runs.map(({ from, to }) => ({ from, to: to ?? new Date(ms) }))
/** The open run ends with this. */
const ended = () => endedAt(nowMs + SECOND)
const stopping = () => see({ state: 'stopping', reason: 'user', runs: ended() })

function call(what: Call['what']): Call {
  const made: Call = {
    number: 1,
    what,
    unitId: 'unit',
    life: createLife('server'),
    askedMs: nowMs,
    beganMs: nowMs,
    path: '/data/a',
    content: 'a',
    readFrom: 0,
    statesBefore: 0,
    now: false,
    wasStarted: false,
    isUse: false,
    outcome: null,
  }
  reference.asked(made)
  return made
}

describe('the reference accepts', () => {
  it('a history without a fault', () => {
    seeRunning()
    const stop = call('stop')
    stopping()
    see({ state: 'stopped' })
    reference.answered(stop, { ok: true, value: null })
    const destroy = call('destroy')
    see({ state: 'destroying', reason: null })
    see({ state: 'destroyed' })
    reference.answered(destroy, { ok: true, value: null })
    expect(reference.faults).toEqual([])
  })

  it('a run that is billed up to a heartbeat', () => {
    seeRunning()
    seeBeat()
    const last = seeBeat()
    see({ state: 'destroying', runs: endedAt(last) })
    expect(reference.faults).toEqual([])
  })

  it('a run that is not billed', () => {
    seeRunning()
    const began = nowMs
    see({})
    see({ state: 'destroying', runs: endedAt(began) })
    expect(reference.faults).toEqual([])
  })
})

describe('a command for a unit that is being created', () => {
  it.each([
    { seconds: 9, faults: 1 },
    { seconds: 10, faults: 0 },
  ])('may be refused after 10 seconds; here $seconds have passed', ({ seconds, faults }) => {
    seeCreating()
    const write = call('write')
    nowMs += seconds * SECOND
    reference.answered(write, { ok: false, error: invalidState('It is still being made.', {}) })
    expect(reference.faults).toHaveLength(faults)
  })
})

describe('the reference finds', () => {
  const histories: Record<string, () => void> = {
    'a destroyed unit that runs again': () => {
      seeRunning()
      see({ state: 'destroying', runs: ended() })
      see({ state: 'destroyed' })
      see({ state: 'running', runs: [...unit.runs, { from: new Date(nowMs), to: null }] })
    },
    'a stopped unit that starts without a call': () => {
      seeRunning()
      const stop = call('stop')
      stopping()
      see({ state: 'stopped' })
      reference.answered(stop, { ok: true, value: null })
      see({ state: 'starting', generation: 2 })
    },
    'a stop that succeeds while the unit runs': () => {
      seeRunning()
      reference.answered(call('stop'), { ok: true, value: null })
    },
    'a stop that is refused while the unit runs': () => {
      seeRunning()
      reference.answered(call('stop'), { ok: false, error: invalidState('It runs.', {}) })
    },
    'more units than a key may run': () => {
      seeRunning()
      reference.seen([unit, { ...unit, id: 'other', state: 'creating', runs: [] }])
    },
    'half a fork': () => {
      seeRunning()
      const copy = { ...unit, forkId: 'fork', heldBy: 'other key', state: 'creating', runs: [] }
      const [one, two] = [
        { ...copy, id: 'one', reason: 'idle' },
        { ...copy, id: 'two' },
      ]
      reference.seen([unit, one, two])
      expect(reference.faults).toEqual([])
      reference.seen([unit, { ...one, state: 'sleeping' }, { ...two, state: 'error' }])
    },
    'a copy that lost a file of its source': () => {
      seeRunning()
      reference.answered(call('write'), { ok: true, value: null })
      const copy = { ...unit, id: 'copy', forkedFrom: 'unit', state: 'creating', reason: 'idle', runs: [] }
      reference.seen([unit, copy])
      reference.seen([unit, { ...copy, state: 'sleeping' }])
      const read = { ...call('read'), unitId: 'copy', readFrom: reference.file('copy', '/data/a').moment() }
      expect(reference.faults).toEqual([])
      reference.answered(read, { ok: false, error: notFound('file', '/data/a') })
    },
    'a unit that sleeps before its time': () => {
      seeRunning()
      see({ state: 'stopping', reason: 'idle', runs: ended() })
    },
    'a unit that wakes without a call': () => {
      seeRunning()
      nowMs += 2 * MINUTE
      see({ state: 'stopping', reason: 'idle', runs: ended() })
      see({ state: 'sleeping' })
      nowMs += 10 * MINUTE
      see({ state: 'starting', generation: 2 })
    },
    'a run that is billed after its end': () => {
      seeRunning()
      see({ state: 'stopping', reason: 'user' })
    },
    'a run that is billed to a time between two heartbeats': () => {
      seeRunning()
      const first = seeBeat()
      seeBeat()
      see({ state: 'destroying', runs: endedAt(first + SECOND / 2) })
    },
    'a charge that shrinks': () => {
      seeRunning()
      see({ charged: 2n })
      see({ charged: 1n })
    },
    'a run that is billed from before its start': () => {
      seeRunning()
      stopping()
      see({ state: 'stopped' })
      see({ state: 'starting', generation: 2 })
      see({
        state: 'running',
        reason: null,
        runs: [...unit.runs, { from: new Date(BEGINNING + 3 * SECOND), to: null }],
      })
    },
  }
  it.each(Object.keys(histories))('%s', (name) => {
    histories[name]?.()
    expect(reference.faults).not.toEqual([])
  })
})

describe('the register of a file', () => {
  it('knows what a copy made since some moment may contain', () => {
    const register = createRegister()
    register.asked(1, 'one')
    register.answered(1)
    const since = register.moment()
    register.asked(2, 'two')
    register.answered(2)
    const copy = createRegister()
    copy.holds(register.possibleSince(since))
    const find = (content: string | null) => copy.judge(copy.moment(), content)
    expect([...find('one'), ...find('two')]).toEqual([])
    expect([...find(null), ...find('three')]).toHaveLength(2)
    expect(copy.isThere()).toBe(true)
    copy.asked(3, 'three')
    copy.answered(3)
    expect(find('three')).toEqual([])
    expect([...find('one'), ...find('two')]).toHaveLength(2)
  })

  it('knows what a read may return', () => {
    const register = createRegister()
    const find = (content: string | null) => register.judge(register.moment(), content)
    expect(find(null)).toEqual([])
    register.asked(1, 'one')
    expect([...find(null), ...find('one')]).toEqual([])
    register.answered(1)
    expect(find(null)).toHaveLength(1)
    register.asked(2, 'two')
    expect([...find('one'), ...find('two')]).toEqual([])
    register.answered(2)
    expect(find('two')).toEqual([])
    expect(find('one')).toHaveLength(1)
  })
})
