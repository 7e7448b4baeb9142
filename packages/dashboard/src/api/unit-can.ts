// What can be done with a unit in each state, and why not. A new state of the contract does not compile without a row.

import type { Contract } from '@berth/sdk'
import type { UnitState } from '../../../../src/contract/states.ts'

export const unitActions = ['start', 'sleep', 'stop', 'fork', 'exec', 'destroy'] as const
export type UnitAction = (typeof unitActions)[number]

const moving = 'Its state is changing.'
const gone = 'It is destroyed.'
const failed = 'It could not be created.'
const asleep = 'It sleeps already.'
const runs = 'It runs.'

/** Null: it can. */
const blocked: Record<UnitState, Partial<Record<UnitAction, string>>> = {
  creating: { start: moving, sleep: moving, stop: moving, fork: moving, exec: moving },
  running: { start: runs },
  stopping: { start: moving, sleep: moving, stop: moving, fork: moving, exec: moving },
  stopped: { sleep: 'It is stopped.', stop: 'It is stopped.', exec: 'It is stopped: start it first.' },
  sleeping: { sleep: asleep },
  starting: { start: moving, sleep: moving, stop: moving, fork: moving, exec: moving },
  destroying: { start: gone, sleep: gone, stop: gone, fork: gone, exec: gone, destroy: gone },
  destroyed: { start: gone, sleep: gone, stop: gone, fork: gone, exec: gone, destroy: gone },
  error: { start: failed, sleep: failed, stop: failed, fork: failed, exec: failed },
}

/** Returns why the action is not possible now; null if it is. */
export function whyNot(unit: Pick<Contract.Unit, 'state'>, action: UnitAction): string | null {
  return blocked[unit.state][action] ?? null
}
