// What the gateway says in a protocol other than HTTP, where that protocol has a word for it: why a connection came
// to nothing, and that its server goes away. What has none just closes.

import type { Protocol } from '../contract/endpoint.ts'
import { type Outcome, sayOf } from './outcomes.ts'
import { fatalError } from './postgres.ts'

export type Tcp = Exclude<Protocol, 'http'>

const refusals: Partial<Record<Tcp, (outcome: Outcome) => Buffer>> = {
  postgres: (outcome) => {
    const { title, text, advice } = sayOf(outcome)
    return fatalError(sqlStates[outcome.kind] ?? '57P03', `${title}. ${text}`, advice)
  },
  redis: (outcome) => {
    const { title, text } = sayOf(outcome)
    return Buffer.from(`-ERR ${title}. ${text}\r\n`)
  },
}

/** Of PostgreSQL's own; 57P03, cannot connect now, for whatever may pass. */
const sqlStates: Partial<Record<Outcome['kind'], string>> = {
  unknown: '08004',
  malformed: '08P01',
  'too-many': '53300',
}

/** Null: its protocol has no word for it before a session. */
export function refusalIn(protocol: Tcp, outcome: Outcome): Buffer | null {
  return refusals[protocol]?.(outcome) ?? null
}

const shutdowns: Partial<Record<Tcp, Buffer>> = {
  postgres: fatalError('57P01', 'terminating connection because the unit stops or falls asleep'),
}

/** To a client that waits for nothing: its session ends, by no fault of its own. */
export function shutdownIn(protocol: Tcp): Buffer | null {
  return shutdowns[protocol] ?? null
}
