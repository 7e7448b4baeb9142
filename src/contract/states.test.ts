// Spec 3 and the open points of design 4, written out as a table of every state and trigger.

import { describe, expect, it } from 'vitest'
import {
  isTransitional,
  nextState,
  type StoppedReason,
  type Trigger,
  transitions,
  unitStates,
} from './states.ts'
import type { UnitState } from './states.ts'

const triggers = Object.keys(transitions) as Trigger[]
const at = (state: UnitState, stoppedReason: StoppedReason | null = null, frozen = false) => ({
  state,
  stoppedReason,
  frozen,
  generation: 3,
})

/** `state reason: trigger → state reason`; a transition that is not in the table is not allowed. */
const allowed: [UnitState, StoppedReason | null, Trigger, UnitState, StoppedReason | null][] = [
  ['creating', null, 'ready', 'running', null],
  ['creating', null, 'createFailed', 'error', null],
  ['creating', null, 'again', 'creating', null],
  ['creating', null, 'exited', 'stopped', 'exited'],
  ['creating', null, 'destroy', 'destroying', null],
  ['creating', 'idle', 'copiedAsleep', 'sleeping', 'idle'],
  ['creating', 'idle', 'ready', 'running', null],
  ['creating', 'idle', 'createFailed', 'error', null],
  ['creating', 'idle', 'again', 'creating', 'idle'],
  ['creating', 'idle', 'exited', 'stopped', 'exited'],
  ['creating', 'idle', 'destroy', 'destroying', null],
  ['creating', 'user', 'copiedStopped', 'stopped', 'user'],
  ['creating', 'user', 'ready', 'running', null],
  ['creating', 'user', 'createFailed', 'error', null],
  ['creating', 'user', 'again', 'creating', 'user'],
  ['creating', 'user', 'exited', 'stopped', 'exited'],
  ['creating', 'user', 'destroy', 'destroying', null],
  ['creating', 'cap', 'copiedStopped', 'stopped', 'cap'],
  ['creating', 'cap', 'ready', 'running', null],
  ['creating', 'cap', 'createFailed', 'error', null],
  ['creating', 'cap', 'again', 'creating', 'cap'],
  ['creating', 'cap', 'exited', 'stopped', 'exited'],
  ['creating', 'cap', 'destroy', 'destroying', null],
  ['creating', 'credits', 'copiedStopped', 'stopped', 'credits'],
  ['creating', 'credits', 'ready', 'running', null],
  ['creating', 'credits', 'createFailed', 'error', null],
  ['creating', 'credits', 'again', 'creating', 'credits'],
  ['creating', 'credits', 'exited', 'stopped', 'exited'],
  ['creating', 'credits', 'destroy', 'destroying', null],
  ['running', null, 'stop', 'stopping', 'user'],
  ['running', null, 'idle', 'stopping', 'idle'],
  ['running', null, 'cap', 'stopping', 'cap'],
  ['running', null, 'credits', 'stopping', 'credits'],
  ['running', null, 'exited', 'stopped', 'exited'],
  ['running', null, 'lost', 'sleeping', 'provider'],
  ['running', null, 'restart', 'starting', 'provider'],
  ['running', null, 'destroy', 'destroying', null],
  ['stopping', 'user', 'stopped', 'stopped', 'user'],
  ['stopping', 'user', 'destroy', 'destroying', null],
  ['stopping', 'cap', 'stopped', 'stopped', 'cap'],
  ['stopping', 'cap', 'destroy', 'destroying', null],
  ['stopping', 'credits', 'stopped', 'stopped', 'credits'],
  ['stopping', 'credits', 'destroy', 'destroying', null],
  ['stopping', 'idle', 'asleep', 'sleeping', 'idle'],
  ['stopping', 'idle', 'asleepFrozen', 'sleeping', 'idle'],
  ['stopping', 'idle', 'destroy', 'destroying', null],
  ['stopped', 'user', 'start', 'starting', 'user'],
  ['stopped', 'user', 'destroy', 'destroying', null],
  ['stopped', 'exited', 'start', 'starting', 'exited'],
  ['stopped', 'exited', 'destroy', 'destroying', null],
  ['stopped', 'cap', 'limitCleared', 'sleeping', 'cap'],
  ['stopped', 'cap', 'destroy', 'destroying', null],
  ['stopped', 'credits', 'limitCleared', 'sleeping', 'credits'],
  ['stopped', 'credits', 'destroy', 'destroying', null],
  ['sleeping', 'idle', 'wake', 'starting', 'idle'],
  ['sleeping', 'idle', 'stop', 'stopping', 'user'],
  ['sleeping', 'idle', 'destroy', 'destroying', null],
  ['sleeping', 'provider', 'wake', 'starting', 'provider'],
  ['sleeping', 'provider', 'stop', 'stopping', 'user'],
  ['sleeping', 'provider', 'destroy', 'destroying', null],
  ['starting', 'user', 'ready', 'running', null],
  ['starting', 'user', 'exited', 'stopped', 'exited'],
  ['starting', 'user', 'startFailed', 'stopped', 'user'],
  ['starting', 'user', 'again', 'starting', 'user'],
  ['starting', 'user', 'destroy', 'destroying', null],
  ['starting', 'idle', 'ready', 'running', null],
  ['starting', 'idle', 'exited', 'stopped', 'exited'],
  ['starting', 'idle', 'wakeFailed', 'sleeping', 'provider'],
  ['starting', 'idle', 'again', 'starting', 'idle'],
  ['starting', 'idle', 'destroy', 'destroying', null],
  ['destroying', null, 'destroyed', 'destroyed', null],
  ['error', null, 'destroy', 'destroying', null],
]

describe('the state table', () => {
  it('allows exactly the transitions of the spec', () => {
    const standings = new Map(allowed.map(([state, reason]) => [`${state} ${reason}`, at(state, reason)]))
    standings.set('destroyed null', at('destroyed'))
    const found = [...standings.values()].flatMap((from) =>
      triggers.flatMap((trigger) => {
        const to = nextState(from, trigger)
        return to ? [[from.state, from.stoppedReason, trigger, to.state, to.stoppedReason]] : []
      }),
    )
    const sorted = (rows: unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted()
    expect(sorted(found)).toEqual(sorted(allowed))
  })

  it('counts the generation up where a run begins, and nowhere else', () => {
    expect(nextState(at('stopped', 'user'), 'start')?.generation).toBe(4)
    expect(nextState(at('sleeping', 'idle'), 'wake')?.generation).toBe(4)
    expect(nextState(at('starting', 'idle'), 'again')?.generation).toBe(4)
    expect(nextState(at('running'), 'restart')?.generation).toBe(4)
    for (const [state, reason, trigger] of allowed) {
      if (!['start', 'wake', 'again', 'restart'].includes(trigger))
        expect(nextState(at(state, reason), trigger)?.generation).toBe(3)
    }
  })

  it('thaws a frozen unit, and wakes one that is not frozen', () => {
    expect(nextState(at('sleeping', 'idle', true), 'thaw')).toEqual(at('starting', 'idle', true))
    expect(nextState(at('sleeping', 'idle', true), 'wake')).toBeNull()
    expect(nextState(at('sleeping', 'idle'), 'thaw')).toBeNull()
    expect(nextState(at('sleeping', 'idle', true), 'hibernated')).toEqual(at('sleeping', 'idle'))
    expect(nextState(at('sleeping', 'idle'), 'hibernated')).toBeNull()
    for (const trigger of ['ready', 'again', 'exited'] as const)
      expect(nextState(at('starting', 'idle', true), trigger)?.frozen, trigger).toBe(false)
  })

  it('lets every state but destroyed be destroyed, and no unit leave destroyed', () => {
    for (const state of unitStates) {
      const end = state === 'destroyed' || state === 'destroying'
      expect(nextState(at(state), 'destroy') === null, state).toBe(end)
      if (state === 'destroyed')
        for (const trigger of triggers) expect(nextState(at(state), trigger)).toBeNull()
    }
  })

  it('names the transitional states', () => {
    expect(unitStates.filter(isTransitional)).toEqual(['creating', 'stopping', 'starting', 'destroying'])
  })
})
