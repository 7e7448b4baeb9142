// The states of a unit and their transitions: spec 3 with the decisions of design 4 ("open points"). Only
// domain/units/lifecycle/transition.ts changes a state, and it reads this table.
//
// While a unit is in a transitional state, `stoppedReason` records where it is going: `stopping` with `idle` ends in
// sleeping, with any other reason in stopped. `starting` with `user` or `exited` came from stopped and returns there
// on failure; with another reason it goes to sleeping. A `creating` unit with a reason is a copy of a unit that does
// not run: `idle` leads to sleeping, another reason to stopped.
//
// The state `sleeping` has two tiers (design 3). `frozen` true: the machine is paused and wakes in milliseconds.
// `frozen` false: there is no machine, and the unit starts from its disk.

export const unitStates = [
  'creating',
  'running',
  'stopping',
  'stopped',
  'sleeping',
  'starting',
  'destroying',
  'destroyed',
  'error',
] as const
export type UnitState = (typeof unitStates)[number]

export const stoppedReasons = ['idle', 'cap', 'credits', 'user', 'provider', 'exited'] as const
export type StoppedReason = (typeof stoppedReasons)[number]

type Transition = {
  from: readonly UnitState[]
  /** The next state; absent if the state stays the same. */
  to?: UnitState
  /** Allowed only while the unit has one of these reasons. */
  when?: readonly StoppedReason[]
  /** Allowed only while `frozen` has this value. */
  whenFrozen?: boolean
  /** The new `stoppedReason`; absent if it stays the same. */
  reason?: StoppedReason | null
  /** The new `frozen`; absent if it stays the same. */
  frozen?: boolean
  /** Begins another run of the machine: its generation is incremented. */
  newRun?: true
}

export const transitions = {
  /** The healthcheck passed; without one, the process has started. */
  ready: { from: ['creating', 'starting'], to: 'running', reason: null, frozen: false },
  createFailed: { from: ['creating'], to: 'error', reason: null },
  /** Copies of sleeping and stopped units: they exist and were never started. */
  copiedAsleep: { from: ['creating'], to: 'sleeping', when: ['idle'] },
  copiedStopped: { from: ['creating'], to: 'stopped', when: ['user', 'cap', 'credits'] },
  /** The run that was to be resumed failed: a new run begins. */
  again: { from: ['creating', 'starting'], frozen: false, newRun: true },

  /** Also for a sleeping unit: nothing wakes it any more. */
  stop: { from: ['running', 'sleeping'], to: 'stopping', reason: 'user' },
  idle: { from: ['running'], to: 'stopping', reason: 'idle' },
  cap: { from: ['running'], to: 'stopping', reason: 'cap' },
  credits: { from: ['running'], to: 'stopping', reason: 'credits' },
  stopped: { from: ['stopping'], to: 'stopped', when: ['user', 'cap', 'credits'], frozen: false },
  asleep: { from: ['stopping'], to: 'sleeping', when: ['idle'] },
  asleepFrozen: { from: ['stopping'], to: 'sleeping', when: ['idle'], frozen: true },
  /** The unit moved from frozen to hibernated sleep, or its machine was lost. */
  hibernated: { from: ['sleeping'], whenFrozen: true, frozen: false },

  /** The process ended by itself. During `stopping` it ended because the service asked it to. */
  exited: { from: ['creating', 'starting', 'running'], to: 'stopped', reason: 'exited', frozen: false },
  /** The host lost or killed the machine: the unit, a user, a limit or idleness did not end it. */
  lost: { from: ['running'], to: 'sleeping', reason: 'provider' },

  /** The unit is restarted to apply changes. If the start fails, it sleeps like a unit that failed to wake. */
  restart: { from: ['running'], to: 'starting', reason: 'provider', newRun: true },
  start: { from: ['stopped'], to: 'starting', when: ['user', 'exited'], newRun: true },
  startFailed: { from: ['starting'], to: 'stopped', when: ['user', 'exited'] },
  wake: { from: ['sleeping'], to: 'starting', whenFrozen: false, newRun: true },
  thaw: { from: ['sleeping'], to: 'starting', whenFrozen: true },
  wakeFailed: {
    from: ['starting'],
    to: 'sleeping',
    when: ['idle', 'provider', 'cap', 'credits'],
    reason: 'provider',
  },
  limitCleared: { from: ['stopped'], to: 'sleeping', when: ['cap', 'credits'] },

  destroy: {
    from: ['creating', 'running', 'stopping', 'stopped', 'sleeping', 'starting', 'error'],
    to: 'destroying',
    reason: null,
  },
  destroyed: { from: ['destroying'], to: 'destroyed' },
} as const satisfies Record<string, Transition>

export type Trigger = keyof typeof transitions

/** States that last only while an operation is in progress; calls that need another state wait. */
export const transitionalStates = [
  'creating',
  'stopping',
  'starting',
  'destroying',
] as const satisfies UnitState[]

/** The states that count against `maxConcurrentUnits` (design 4). */
export const liveStates = ['creating', 'starting', 'running', 'stopping'] as const satisfies UnitState[]

/** A unit in one of these states has given up its name in the stack: another unit may take it. */
export const statesWithoutName = ['error', 'destroying', 'destroyed'] as const satisfies UnitState[]

export function isTransitional(state: UnitState): boolean {
  return transitionalStates.some((passing) => passing === state)
}

export type Status = {
  state: UnitState
  stoppedReason: StoppedReason | null
  frozen: boolean
  generation: number
}

/**
 * Returns the status that a trigger leads to, or null if it is not allowed now. Pure; nothing else reads the table.
 */
export function nextState(current: Status, trigger: Trigger): Status | null {
  const { from, to, when, whenFrozen, reason, frozen, newRun }: Transition = transitions[trigger]
  if (!from.includes(current.state)) return null
  if (whenFrozen !== undefined && current.frozen !== whenFrozen) return null
  if (when && (current.stoppedReason === null || !when.includes(current.stoppedReason))) return null
  return {
    state: to ?? current.state,
    stoppedReason: reason === undefined ? current.stoppedReason : reason,
    frozen: frozen ?? current.frozen,
    generation: newRun ? current.generation + 1 : current.generation,
  }
}

/** The states that any of the units is in, in the order above, and of how many. */
export function countStates(units: { state: UnitState }[]): [UnitState, number][] {
  const counts = new Map<UnitState, number>()
  for (const { state } of units) counts.set(state, (counts.get(state) ?? 0) + 1)
  return unitStates.flatMap((state) => {
    const count = counts.get(state)
    return count === undefined ? [] : [[state, count] as [UnitState, number]]
  })
}
