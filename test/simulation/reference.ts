// What callers may rely on, written a second time and as simply as possible: without operations, steps and locks,
// from calls, answers, and what the database contained after each commit.

import { AppError } from '../../src/contract/errors.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import { sleepWindowMs } from '../../src/lib/duration.ts'
import { type Call, type Outcome, paths } from './calls.ts'
import {
  CREATING_WAIT_MS,
  judgeBeginning,
  judgeChange,
  judgeCharges,
  judgeFailure,
  judgeFork,
  judgeRuns,
  judgeTimes,
  WAIT_MS,
} from './judge.ts'
import { createRegister, type Register } from './register.ts'
import type { Seen } from './seen.ts'

export type Reference = {
  asked: (call: Call) => void
  answered: (call: Call, outcome: Outcome) => void
  /** The server died during the call: whether it took effect is unknown. */
  cutOff: (call: Call) => void
  /** A unit sent packets to another. */
  sent: () => void
  seen: (units: Seen[]) => void
  /** The faults so far. */
  faults: string[]
  unanswered: () => Call[]
  units: () => Seen[]
  /** The n-th unit, modulo their number, of those that live and one that does not. */
  unitAt: (index: number) => Seen | undefined
  file: (id: string, path: string) => Register
  /** Milliseconds for which the unit was seen to run. */
  ranMs: (id: string) => number
  /** Milliseconds from the creation of the unit until its destruction began. Only while the clock is not set. */
  keptMs: (id: string) => number
}

/** What the reference knows of the world. */
export type Surroundings = {
  nowMs: () => number
  /** By the monotonic clock. */
  elapsedMs: () => number
  /** The clock was set, so recorded times cannot be compared any more. */
  hasJumped: () => boolean
  maxConcurrentUnits: ReadonlyMap<string, number>
  /** The number of commands and transfers that run in a unit’s machine. */
  atWorkIn: (id: string) => number
  /** Nothing is broken on this host, so nothing may fail there; null: on any host. */
  isCalm: (hostId: string | null) => boolean
}

type Known = {
  seen: Seen
  /** The latest time at which it was certainly used. */
  usedMs: number
  /** A stop was answered, and no start was called since. */
  staysDown: boolean
  /** The states it was in, in order. */
  states: string[]
  files: Map<string, Register>
  /** When it was created and when its destruction began, by its own record. */
  made: Date | null
  left: Date | null
  /** For a copy that is being made: its source, and the moments of its files’ histories before. */
  copyOf: { source: Known; moments: ReadonlyMap<string, number> } | null
}

/** The state that the unit of an answered call was in at some time until then. */
const reaches: Partial<Record<Call['what'], string>> = {
  start: 'running',
  exec: 'running',
  write: 'running',
  read: 'running',
  stop: 'stopped',
  destroy: 'destroyed',
}
/** States without a way back. */
const gone = ['error', 'destroying', 'destroyed']
/** States in which a call is refused. */
const forbids: Partial<Record<Call['what'], string[]>> = {
  start: gone,
  stop: gone,
  exec: [...gone, 'stopped', 'stopping'],
  write: [...gone, 'stopped', 'stopping'],
  fork: [...gone, 'creating', 'starting', 'stopping'],
  read: [...gone, 'stopped', 'stopping'],
}
const live = ['creating', 'starting', 'running', 'stopping']
/** Neighbours wake one after the other, and packets count for a minute. */
const WAKES_WITHIN_MS = 3 * MINUTE

export function createReference(around: Surroundings): Reference {
  const known = new Map<string, Known>()
  const unanswered = new Set<Call>()
  const sleepsNow: Call[] = []
  /** Every heartbeat that was seen. */
  const beats = new Map<string, Set<number>>()
  const beatsOf = (hostId: string) => {
    const ofHost = beats.get(hostId) ?? new Set<number>()
    beats.set(hostId, ofHost)
    return ofHost
  }
  const faults: string[] = []
  /** The time of the last call that may wake a unit. */
  let calledMs = 0
  const condemn = (who: string, found: string[]) => faults.push(...found.map((fault) => `${who}: ${fault}`))

  function asked(call: Call): void {
    unanswered.add(call)
    if (call.isUse) calledMs = around.nowMs()
    const unit = known.get(call.unitId ?? '')
    if (!unit) return
    call.statesBefore = unit.states.length
    if (call.now) sleepsNow.push(call)
    if (call.what === 'start') unit.staysDown = false
    if (call.what === 'write') fileOf(unit, call.path).asked(call.number, call.content)
  }

  function answered(call: Call, outcome: Outcome): void {
    unanswered.delete(call)
    if (call.isUse) calledMs = around.nowMs()
    if (!outcome.ok) {
      const tookMs = around.elapsedMs() - call.beganMs
      condemn(
        `call ${call.number} (${call.what})`,
        judgeFailure(outcome.error, around.isCalm(hostOf(call)), tookMs),
      )
    }
    const unit = known.get(call.unitId ?? '')
    if (!unit) return
    const meanwhile = unit.states.slice(call.statesBefore - 1)
    if (outcome.ok) fulfilled(call, unit, meanwhile, outcome.value)
    else refused(call, unit, meanwhile, outcome.error)
  }

  function fulfilled(call: Call, unit: Known, meanwhile: string[], value: unknown): void {
    const { id } = unit.seen
    const reached = reaches[call.what]
    // A process may exit right after it was started.
    const isBrief = call.what === 'start' && meanwhile.join().includes('starting,stopped')
    const isTrue = !reached || isBrief || meanwhile.includes(reached)
    if (!isTrue) condemn(id, [`was only ${meanwhile.join(', ')}, and call ${call.number} was answered`])
    if (call.isUse) unit.usedMs = Math.max(unit.usedMs, call.askedMs)
    if (call.what === 'write') fileOf(unit, call.path).answered(call.number)
    if (call.what === 'read') condemn(id, fileOf(unit, call.path).judge(call.readFrom, String(value)))
    if (call.what === 'start') for (const stop of unanswered) if (stop.unitId === id) stop.wasStarted = true
    if (call.what === 'stop') {
      const isStarted = [...unanswered].some(({ what, unitId }) => what === 'start' && unitId === id)
      unit.staysDown = !isStarted && !call.wasStarted
      condemn(id, judgeRest(unit))
    }
  }

  /** Only the state of the unit or a long wait is a reason to refuse a call. */
  function refused(call: Call, unit: Known, meanwhile: string[], error: unknown): void {
    const { id } = unit.seen
    const code = codeOf(error)
    if (code === 'not_found' && call.what === 'read') {
      condemn(id, fileOf(unit, call.path).judge(call.readFrom, null))
    }
    const forbidding = forbids[call.what]
    const waitMs = meanwhile.at(-1) === 'creating' ? CREATING_WAIT_MS : WAIT_MS
    if (code !== 'invalid_state' || !forbidding || around.elapsedMs() - call.beganMs >= waitMs) return
    const isTrue = meanwhile.some((state) => forbidding.includes(state))
    if (!isTrue) condemn(id, [`was ${meanwhile.join(', ')}, and call ${call.number} was refused`])
  }

  function hostOf({ unitId }: Call): string | null {
    return known.get(unitId ?? '')?.seen.hostId ?? null
  }

  function seen(units: Seen[]): void {
    for (const { hostId, wholeAt } of units) if (wholeAt) beatsOf(hostId).add(wholeAt.getTime())
    for (const unit of units) {
      const before = known.get(unit.id)
      if (before) condemn(unit.id, compare(before, unit))
      else condemn(unit.id, begin(unit))
      if (!around.hasJumped()) condemn(unit.id, [...judgeRuns(unit), ...judgeCharges(unit)])
    }
    const forks = Map.groupBy(
      [...known.values()].filter(({ seen: { forkId } }) => forkId !== null),
      ({ seen: { forkId } }) => forkId ?? '',
    )
    for (const [forkId, copies] of forks) condemn(forkId, judgeFork(forkId, copies))
    for (const [holder, most] of around.maxConcurrentUnits) {
      const count = units.filter((unit) => unit.heldBy === holder && isLive(unit)).length
      if (count > most) condemn(holder, [`has ${count} units at once, of ${most}`])
    }
  }

  /** A unit that is stopped while it sleeps takes no room that it did not have. */
  function isLive({ id, state, reason }: Seen): boolean {
    // A copy of a unit that does not run is never started.
    if (state === 'creating' && reason !== null) return false
    const wasAsleep = known.get(id)?.states.at(-2) === 'sleeping'
    return live.includes(state) && !(state === 'stopping' && wasAsleep)
  }

  function begin(unit: Seen): string[] {
    const usedMs = around.nowMs()
    const copyOf = beginCopy(unit)
    known.set(unit.id, {
      seen: unit,
      usedMs,
      staysDown: false,
      states: [unit.state],
      files: new Map(),
      made: null,
      left: null,
      copyOf,
    })
    return judgeBeginning(unit)
  }

  function beginCopy({ forkedFrom }: Seen): Known['copyOf'] {
    const source = known.get(forkedFrom ?? '')
    if (!source) return null
    return { source, moments: new Map(paths.map((path) => [path, fileOf(source, path).moment()])) }
  }

  /** The copy has been made by now. */
  function endCopy(unit: Known): void {
    if (!unit.copyOf) return
    const { source, moments } = unit.copyOf
    for (const [path, moment] of moments) fileOf(unit, path).holds(fileOf(source, path).possibleSince(moment))
    unit.copyOf = null
  }

  function compare(unit: Known, now: Seen): string[] {
    const { seen: before } = unit
    unit.seen = now
    if (now.state === before.state) return judgeChange(before, now)
    unit.states.push(now.state)
    if (before.state === 'creating' && !gone.includes(now.state)) unit.made = now.changedAt
    if (now.state === 'destroying') unit.left = now.changedAt
    endCopy(unit)
    if (now.state === 'running') unit.usedMs = Math.max(unit.usedMs, now.changedAt.getTime())
    const fellAsleep = before.state === 'running' && now.state === 'stopping' && now.reason === 'idle'
    const isTimely = !around.hasJumped()
    return [
      ...judgeChange(before, now),
      ...judgeRest(unit),
      ...(isTimely ? judgeTimes(before, now, around.nowMs(), beatsOf(now.hostId)) : []),
      ...(isTimely && fellAsleep ? judgeSleep(unit, before) : []),
      ...(isTimely && before.state === 'sleeping' && now.state === 'starting' ? judgeWake() : []),
    ]
  }

  function judgeRest({ staysDown, seen: { state } }: Known): string[] {
    if (!staysDown || ['stopped', 'destroying', 'destroyed'].includes(state)) return []
    return [`was stopped, and is ${state} though nobody asked for a start`]
  }

  /** A unit may not sleep before its time, nor during a command. */
  function judgeSleep({ seen: unit, usedMs }: Known, { sleepsAt }: Seen): string[] {
    // A sleep that fails for one unit of a stack goes on for the others.
    const isGoingOn = ({ outcome, askedMs }: Call) =>
      outcome === null || (!outcome.ok && around.nowMs() - askedMs < MINUTE)
    if (sleepsNow.some(isGoingOn)) return []
    const earlyMs = usedMs + sleepWindowMs(unit.sleep) - around.nowMs()
    const isDue = sleepsAt !== null && sleepsAt <= unit.changedAt
    return [
      ...(isDue ? [] : [`sleeps at ${unit.changedAt.toISOString()}, and not at ${sleepsAt?.toISOString()}`]),
      ...(earlyMs > 0 ? [`sleeps ${earlyMs} ms before its window has passed`] : []),
      ...(around.atWorkIn(unit.id) > 0 ? ['sleeps while a command runs in it'] : []),
    ]
  }

  function judgeWake(): string[] {
    const isCalled = [...unanswered].some(({ isUse }) => isUse) || around.nowMs() - calledMs < WAKES_WITHIN_MS
    return isCalled ? [] : ['wakes, and nobody called']
  }

  function fileOf({ files }: Known, path: string): Register {
    const file = files.get(path) ?? createRegister()
    files.set(path, file)
    return file
  }

  return {
    asked,
    answered,
    cutOff: (call) => void unanswered.delete(call),
    sent: () => {
      calledMs = around.nowMs()
    },
    seen,
    faults,
    unanswered: () => [...unanswered],
    units: () => [...known.values()].map((unit) => unit.seen),
    unitAt: (index) => {
      const units = [...known.values()].map((unit) => unit.seen)
      const isGone = ({ state }: Seen) => gone.includes(state)
      const choice = [...units.filter((unit) => !isGone(unit)), ...units.filter(isGone).slice(-1)]
      return choice[index % Math.max(1, choice.length)]
    },
    file: (id, path) => {
      const unit = known.get(id)
      return unit ? fileOf(unit, path) : createRegister()
    },
    keptMs: (id) => {
      const { made = null, left = null } = known.get(id) ?? {}
      return made && left ? left.getTime() - made.getTime() : 0
    },
    ranMs: (id) => {
      const runs = known.get(id)?.seen.runs ?? []
      return runs.reduce((sum, { from, to }) => sum + ((to?.getTime() ?? around.nowMs()) - from.getTime()), 0)
    },
  }
}

function codeOf(error: unknown): string {
  return error instanceof AppError ? error.code : ''
}
