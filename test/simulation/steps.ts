// The parts of a schedule: calls, faults and time, as data that is drawn from a seed, printed in one line, and left
// out step by step until only what a failure needs is left.

import fc from 'fast-check'
import type { Operation } from '../support/fake-engine/faults.ts'
import type { EngineErrorKind } from '../../src/engine/errors.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import { paths, type specs, type Wish } from './calls.ts'

export type Trouble =
  | { trouble: 'the server dies' }
  | { trouble: 'the engine dies'; forMs: number }
  | { trouble: 'the host dies' }
  | { trouble: 'a process ends'; unit: number; code: number }
  | { trouble: 'a machine is lost'; unit: number }
  | { trouble: 'the engine fails'; operation: Operation; kind: EngineErrorKind; when: 'before' | 'after' }
  | { trouble: 'the engine is slow'; operation: Operation; forMs: number; when: 'before' | 'after' }
  | { trouble: 'the connection breaks'; queries: number; side: 'before' | 'after' }
  | { trouble: 'the database is away'; forMs: number }
  | { trouble: 'memory is left'; mb: number }
  | { trouble: 'packets are sent'; unit: number }
  | { trouble: 'the clock jumps'; byMs: number }
  | HostTrouble

/** `host` is an index into the hosts of other machines. */
export type HostTrouble =
  | { trouble: 'a host is cut off'; host: number; forMs: number }
  | { trouble: 'a host refuses connections'; host: number; forMs: number }
  | { trouble: 'a host boots'; host: number; forMs: number }
  | { trouble: 'a host is full'; host: number; forMs: number }
  | { trouble: 'two hosts are swapped' }
  | { trouble: 'a machine of no unit is there'; host: number }
  | { trouble: 'a host is given up'; host: number }

export type Act = { by: number; wish: Wish } | Trouble | { passMs: number }

/** An act, and how much of what is in progress then goes on before the next one. */
export type Step = { act: Act; gates: number }

export type Schedule = {
  /** Decides which is next whenever several could be. */
  seed: number
  /** Without any faults: a call may fail only because of the caller. */
  isCalm: boolean
  /** There are hosts of other machines, and more than one team. */
  hasHosts: boolean
  /** The server's own host takes no units. */
  isDrained?: boolean
  steps: Step[]
}

const unit = fc.nat(5)
const window = fc.constantFrom('1m', '1m', '2m', 'never')
const spec: fc.Arbitrary<keyof typeof specs> = weighted({
  plain: 5,
  keeping: 2,
  checked: 6,
  brief: 1,
  sick: 1,
  broken: 1,
})
const create = fc.record({
  call: fc.constant('create' as const),
  name: fc.constantFrom('web', 'db', 'job'),
  stack: fc.constantFrom('one', 'one', 'two'),
  spec,
  sleep: window,
  wait: fc.boolean(),
})
const onUnit = fc.record({ call: weighted({ start: 6, stop: 3, destroy: 1, get: 1 }), unit })
const exec = fc.record({ call: fc.constant('exec' as const), unit, forS: fc.constantFrom(0, 0, 1, 30) })
const fork = fc.record({
  call: fc.constant('fork' as const),
  unit,
  name: fc.constantFrom('copy', 'copy', 'web', undefined),
  stack: fc.constantFrom('one', 'two', undefined),
  wait: fc.boolean(),
})
const forkStack = fc.record({
  call: fc.constant('fork a stack' as const),
  unit,
  into: fc.constantFrom('three', 'four', undefined),
  wait: fc.boolean(),
})
const file = fc.record({ call: weighted({ write: 3, read: 2 }), unit, path: fc.constantFrom(...paths) })
const sleep = fc.record({
  call: fc.constant('sleep' as const),
  unit,
  sleep: window,
  stack: fc.constantFrom(false, false, true),
  now: fc.constantFrom(true, true, false),
})
const wish: fc.Arbitrary<Wish> = fc.oneof(
  { weight: 3, arbitrary: create },
  { weight: 6, arbitrary: onUnit },
  { weight: 4, arbitrary: exec },
  { weight: 4, arbitrary: file },
  { weight: 5, arbitrary: sleep },
  { weight: 4, arbitrary: fork },
  { weight: 4, arbitrary: forkStack },
  { weight: 1, arbitrary: fc.record({ call: fc.constant('destroy a stack' as const), unit }) },
  { weight: 1, arbitrary: fc.constant({ call: 'list' as const }) },
)

/** The operations of the engine that fail or are slow, with their weights. */
export const troubled = {
  start: 3,
  stop: 3,
  freeze: 3,
  thaw: 3,
  create: 2,
  fork: 3,
  suspend: 1,
  destroy: 2,
  exec: 2,
  pull: 1,
  list: 1,
  writeFile: 1,
  capacity: 1,
} satisfies Partial<Record<Operation, number>>
const operation: fc.Arbitrary<Operation> = weighted(troubled)
const kind = fc.constantFrom<EngineErrorKind[]>('internal', 'timeout', 'engine_away', 'host_full')
const when = fc.constantFrom<('before' | 'after')[]>('before', 'after')
const forMs = fc.constantFrom(SECOND, 10 * SECOND, MINUTE)

/** A fault of that name, with drawn details. */
function named<Name extends string, Details extends object>(
  weight: number,
  trouble: Name,
  details: { [Key in keyof Details]: fc.Arbitrary<Details[Key]> },
): fc.WeightedArbitrary<{ trouble: Name } & Details> {
  return { weight, arbitrary: fc.record(details).map((drawn) => ({ trouble, ...(drawn as Details) })) }
}

const trouble: fc.Arbitrary<Trouble> = fc.oneof(
  named(5, 'the server dies', {}),
  named(2, 'the engine dies', { forMs }),
  named(1, 'the host dies', {}),
  named(2, 'a process ends', { unit, code: fc.constantFrom(0, 1, 137) }),
  named(2, 'a machine is lost', { unit }),
  named(5, 'the engine fails', { operation, kind, when }),
  named(2, 'the engine is slow', { operation, forMs, when }),
  named(2, 'the connection breaks', { queries: fc.nat(12), side: when }),
  named(1, 'the database is away', { forMs }),
  named(1, 'memory is left', { mb: fc.constantFrom(100, 65_536) }),
  named(2, 'packets are sent', { unit }),
)

const host = fc.nat(1)
const awayMs = fc.constantFrom(SECOND, 10 * SECOND, 25 * SECOND, 3 * MINUTE)

const hostTrouble: fc.Arbitrary<Trouble> = fc.oneof(
  named(6, 'a host is cut off', { host, forMs: awayMs }),
  named(3, 'a host refuses connections', { host, forMs: awayMs }),
  named(3, 'a host boots', { host, forMs: awayMs }),
  named(1, 'a host is full', { host, forMs: awayMs }),
  named(1, 'two hosts are swapped', {}),
  named(1, 'a machine of no unit is there', { host }),
  named(1, 'a host is given up', { host }),
)

const jump = fc.record({
  trouble: fc.constant('the clock jumps' as const),
  byMs: fc.constantFrom(HOUR, -HOUR, DAY, -DAY, 10 * MINUTE),
})

const passing = fc.record({
  passMs: fc.constantFrom(SECOND, 5 * SECOND, 12 * SECOND, 70 * SECOND, 130 * SECOND),
})

/** `withJumps`: the host’s clock is set at times. */
export function schedules({
  withJumps,
  hasHosts,
}: {
  withJumps: boolean
  hasHosts: boolean
}): fc.Arbitrary<Schedule> {
  const by = fc.nat(hasHosts ? 3 : 1)
  const act: fc.Arbitrary<Act> = fc.oneof(
    { weight: 14, arbitrary: fc.record({ by, wish }) },
    { weight: 5, arbitrary: trouble },
    { weight: 3, arbitrary: passing },
    ...(hasHosts ? [{ weight: 4, arbitrary: hostTrouble }] : []),
    ...(withJumps ? [{ weight: 1, arbitrary: jump }] : []),
  )
  // Enough to let a call begin, to stop it at any place, or to let it end.
  const gates = fc.oneof(fc.nat(5), fc.nat(20), fc.constant(60))
  const first = fc.record({ act: fc.record({ by, wish: create }), gates: fc.constant(60) })
  const others = fc.record({ act, gates })
  return fc.record({
    seed: fc.integer(),
    isCalm: fc.nat(5).map((n) => n === 0),
    hasHosts: fc.constant(hasHosts),
    steps: fc
      .tuple(
        fc.array(first, { minLength: hasHosts ? 3 : 1, maxLength: hasHosts ? 6 : 3, size: 'max' }),
        fc.array(others, { maxLength: 60, size: 'max' }),
      )
      .map(([begin, rest]) => [...begin, ...rest]),
  })
}

function weighted<Name extends string>(weights: Record<Name, number>): fc.Arbitrary<Name> {
  const names = Object.entries<number>(weights)
  return fc.constantFrom(...names.flatMap(([name, weight]) => Array<Name>(weight).fill(name as Name)))
}
