// Decides which pulls run. Concurrent pulls of one reference are one. A pull that no caller waits for any more is
// ended. Pulls from registries are limited: a few at once, with a share for each team (decisions/images.md). A pull that
// several teams wait for runs in the turn of whichever comes first.

import { type Clock, MINUTE } from '../../../lib/clock.ts'
import { createFairQueue, type Entry } from '../../../lib/concurrency/fair-queue.ts'
import { logLimitReached } from '../../../lib/limit-reached.ts'
import type { Log } from '../../../lib/log.ts'
import type { Image, PullWaiter } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import type { ProgressOfPull, PullBoard } from './progress.ts'

export type PullQueue = {
  /**
   * Resolves with the result of `work`, which is started unless it is in progress for this reference. Without
   * `waiter` the wait cannot be given up. Throws EngineError `unknown_machine` once it was given up.
   */
  pull(reference: string, waiter: PullWaiter | null, work: (pull: Pull) => Promise<Image>): Promise<Image>
  /** Ends all waits of a machine, and the pulls that only it waited for. */
  giveUp(id: string): void
  /** Resolves when no pull is in progress. */
  drain(): Promise<void>
}

export type Pull = {
  /** Aborts when no caller waits any more. */
  signal: AbortSignal
  /** What callers that wait are told of it. */
  progress: ProgressOfPull
  /** The network group of the team that asked first; null where no team did. */
  group: number | null
  /** Runs work that uses a registry, when it is this pull's turn. Throws EngineError `host_full` if too many wait. */
  inTurn(work: () => Promise<Image>): Promise<Image>
}

/** Each may take gigabytes and a core for minutes. Enough that a few slow registries do not block others. */
const AT_ONCE = 8
/** Slow pulls go on besides this many others. */
const AT_ONCE_WITH_SLOW_ONES = 24
/** Of one team, including slow ones. */
const AT_ONCE_OF_TEAM = 3
const SLOW_MS = MINUTE
const WAITING = { perOwner: 64, inAll: 512 }
/** Longer than all steps of a pull together: a pull that hangs longer is not joined. */
const LONGEST_MS = 60 * MINUTE

/** The waiter of an operator's command, which creates no machine. */
const OPERATOR = 'operator'

type Waiter = { id: string | null; team: string; given: PromiseWithResolvers<never> }
type Ticket = Entry & { flight: Flight }
type Turn = { tickets: Map<string, Ticket>; admitted: Ticket | null; begin: PromiseWithResolvers<void> }
type Flight = {
  image: Promise<Image>
  waiters: Set<Waiter>
  ending: AbortController
  signal: AbortSignal
  untilMs: number
  /** Set while it waits for its turn, or has it. */
  turn: Turn | null
}

/** `closing` ends all pulls. */
export function createPullQueue({
  clock,
  log,
  board,
  closing,
}: {
  clock: Clock
  board: PullBoard
  log: Log
  closing: AbortSignal
}): PullQueue {
  const queue = createFairQueue<Ticket>({ ...WAITING, insidePerOwner: AT_ONCE_OF_TEAM })
  const flights = new Map<string, Flight>()
  const running = new Set<Promise<Image>>()

  function begin(reference: string, group: number | null, work: (pull: Pull) => Promise<Image>): Flight {
    const ending = new AbortController()
    const progress = board.open(() => [...flight.waiters].flatMap(({ id }) => id ?? []))
    const flight: Flight = {
      image: Promise.resolve().then(() =>
        work({ signal: flight.signal, progress, group, inTurn: (asked) => inTurn(flight, asked, progress) }),
      ),
      waiters: new Set(),
      ending,
      signal: AbortSignal.any([ending.signal, closing]),
      untilMs: clock.monotonicMs() + LONGEST_MS,
      turn: null,
    }
    flights.set(reference, flight)
    running.add(flight.image)
    const end = () => {
      running.delete(flight.image)
      progress.end()
      forget(reference, flight)
    }
    flight.image.then(end, end)
    return flight
  }

  function forget(reference: string, flight: Flight): void {
    if (flights.get(reference) === flight) flights.delete(reference)
  }

  async function inTurn(
    flight: Flight,
    work: () => Promise<Image>,
    progress: ProgressOfPull,
  ): Promise<Image> {
    const { signal } = flight
    signal.throwIfAborted()
    const turn: Turn = { tickets: new Map(), admitted: null, begin: Promise.withResolvers() }
    flight.turn = turn
    for (const { team } of flight.waiters) askForTurn(flight, turn, team)
    if (turn.tickets.size === 0) throw crowded()
    const giveUpWait = () => turn.begin.reject(signal.reason)
    signal.addEventListener('abort', giveUpWait, { once: true })
    admit()
    progress.begin('waiting')
    try {
      await turn.begin.promise
      const { admitted } = turn
      clock.sleep(SLOW_MS, signal).then(
        () => admitted && giveUpPlace(admitted),
        () => {},
      )
      return await work()
    } finally {
      signal.removeEventListener('abort', giveUpWait)
      flight.turn = null
      for (const ticket of turn.tickets.values()) queue.leave(ticket)
      admit()
    }
  }

  function askForTurn(flight: Flight, turn: Turn, team: string): void {
    if (turn.admitted !== null || turn.tickets.has(team)) return
    const ticket = { owner: team, weight: 1, flight }
    if (queue.join(ticket)) turn.tickets.set(team, ticket)
    else logLimitReached({ log, clock }, { bound: 'image pulls that wait', by: teamOrNull(team) })
  }

  /** Called once no one of the team waits for the pull. */
  function leaveQueue({ turn, waiters }: Flight, team: string): void {
    const ticket = turn?.tickets.get(team)
    if (!turn || !ticket || turn.admitted === ticket || [...waiters].some((waiter) => waiter.team === team))
      return
    turn.tickets.delete(team)
    queue.leave(ticket)
  }

  function giveUpPlace(ticket: Ticket): void {
    queue.releasePlace(ticket)
    admit()
  }

  function admit(): void {
    // No pull is admitted while those in progress exceed this weight.
    const room = { places: AT_ONCE, weight: AT_ONCE_WITH_SLOW_ONES - 1 }
    for (let next = queue.admit(room); next.length > 0; next = queue.admit(room)) {
      for (const ticket of next) {
        const { turn } = ticket.flight
        // Another team's turn of the same pull came first.
        if (turn === null || turn.admitted !== null) {
          queue.leave(ticket)
          continue
        }
        turn.admitted = ticket
        for (const other of turn.tickets.values()) if (other !== ticket) queue.leave(other)
        turn.begin.resolve()
      }
    }
    for (const owner of queue.atTheirBound()) {
      logLimitReached({ log, clock }, { bound: 'image pulls at once', by: teamOrNull(owner) })
    }
  }

  return {
    async pull(reference, wanted, work) {
      const underWay = flights.get(reference)
      const joined = underWay !== undefined && clock.monotonicMs() < underWay.untilMs
      const flight = joined ? underWay : begin(reference, wanted?.networkGroup ?? null, work)
      const waiter: Waiter = {
        id: wanted?.id ?? null,
        team: wanted?.teamId ?? OPERATOR,
        given: Promise.withResolvers(),
      }
      flight.waiters.add(waiter)
      if (flight.turn !== null) askForTurn(flight, flight.turn, waiter.team)
      admit()
      try {
        return await Promise.race([flight.image, waiter.given.promise])
      } finally {
        flight.waiters.delete(waiter)
        leaveQueue(flight, waiter.team)
        if (flight.waiters.size === 0) {
          // Later callers must not join a pull that is being ended.
          forget(reference, flight)
          flight.ending.abort(givenUp())
        }
      }
    },
    giveUp(id) {
      for (const { waiters } of flights.values()) {
        for (const waiter of waiters) if (waiter.id === id) waiter.given.reject(givenUp())
      }
    },
    async drain() {
      await Promise.allSettled(running)
    },
  }
}

function teamOrNull(owner: string): string | null {
  return owner === OPERATOR ? null : owner
}

function givenUp(): EngineError {
  return new EngineError('unknown_machine', 'The machine was destroyed before its image was pulled.')
}

function crowded(): EngineError {
  return new EngineError('host_full', 'Too many images of this team wait to be pulled.')
}
