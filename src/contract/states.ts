// The life of a unit as data: spec 3 with what design 4 ("open points") decided. Nothing changes a state
// but domain/units/lifecycle/transition.ts, and that reads this table.
//
// A unit on its way keeps the reason it was stopped for, which tells where the way leads: `stopping`
// with `idle` ends asleep, with any other reason stopped; `starting` with `user` or `exited` came from
// stopped and goes back there when it fails, with another reason it goes to sleep.
// A `creating` unit that has one is a copy of a unit that does not run: `idle` leads to sleep, another to stopped.
//
// Sleep has two tiers behind its one state (design 3). `frozen` says which: the machine stands still and
// wakes in milliseconds, or there is none and it starts anew.

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
  /** Left out, the state stays. */
  to?: UnitState
  /** Only while the unit has one of these reasons. */
  when?: readonly StoppedReason[]
  /** Only while the machine is, or is not, frozen. */
  whenFrozen?: boolean
  /** What `stoppedReason` becomes; left out, it stays what it was. */
  reason?: StoppedReason | null
  /** What becomes of `frozen`; left out, it stays what it was. */
  frozen?: boolean
  /** Begins another run of the machine: its generation counts up. */
  newRun?: true
}

export const transitions = {
  /** Healthcheck passed, or without one the process has started. */
  ready: { from: ['creating', 'starting'], to: 'running', reason: null, frozen: false },
  createFailed: { from: ['creating'], to: 'error', reason: null },
  /** Copies of what sleeps and of what is stopped: they are there, and were never started. */
  copiedAsleep: { from: ['creating'], to: 'sleeping', when: ['idle'] },
  copiedStopped: { from: ['creating'], to: 'stopped', when: ['user', 'cap', 'credits'] },
  /** The run it was to go on with came to nothing: another one begins. */
  again: { from: ['creating', 'starting'], frozen: false, newRun: true },

  /** A sleeping unit too: nothing wakes it from then on. */
  stop: { from: ['running', 'sleeping'], to: 'stopping', reason: 'user' },
  idle: { from: ['running'], to: 'stopping', reason: 'idle' },
  cap: { from: ['running'], to: 'stopping', reason: 'cap' },
  credits: { from: ['running'], to: 'stopping', reason: 'credits' },
  stopped: { from: ['stopping'], to: 'stopped', when: ['user', 'cap', 'credits'], frozen: false },
  asleep: { from: ['stopping'], to: 'sleeping', when: ['idle'] },
  asleepFrozen: { from: ['stopping'], to: 'sleeping', when: ['idle'], frozen: true },
  /** From the first tier of sleep to the second, or its machine was lost. */
  hibernated: { from: ['sleeping'], whenFrozen: true, frozen: false },

  /** The process ended on its own. Within `stopping` it ended because we asked. */
  exited: { from: ['creating', 'starting', 'running'], to: 'stopped', reason: 'exited', frozen: false },
  /** The host lost or killed it: neither the unit, its user, a limit nor idleness ended it. */
  lost: { from: ['running'], to: 'sleeping', reason: 'provider' },

  /** Started anew with what has changed since. Should it not start, it sleeps like one that did not wake. */
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

/** States that last only while something is under way; whoever arrives waits. */
export const transitionalStates = [
  'creating',
  'stopping',
  'starting',
  'destroying',
] as const satisfies UnitState[]

/** What counts against `maxConcurrentUnits` (design 4). */
export const liveStates = ['creating', 'starting', 'running', 'stopping'] as const satisfies UnitState[]

/** Who is in one of these has no name in its stack any more: another unit may have it. */
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

/** Where a trigger leads from here, or null where it is not allowed. Pure: the table's only reader. */
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
