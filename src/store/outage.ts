// Decides whether a query failed because the database is unavailable, and not because of the query itself.

import pg from 'pg'
import { LeadershipLost } from './leaders.ts'

/** SQLSTATEs of a server that shuts down, starts up, recovers or has no connection left. */
const awayStates = ['57P01', '57P02', '57P03', '57P05', '53300', '08000', '08003', '08006', '25006']
const socketCodes = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ETIMEDOUT']

export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // The new leader answers in a moment.
  if (error instanceof LeadershipLost) return true
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (error instanceof pg.DatabaseError) return awayStates.includes(code)
  // The driver has no code for these.
  const broken =
    /^Connection terminated|^Client has encountered a connection error|^timeout exceeded when trying to connect/.test(
      error.message,
    )
  return broken || ('syscall' in error && socketCodes.includes(code))
}

const TRIES = 3

/** For work that may run twice: when a connection breaks, it is unknown whether its last statement took effect. */
export async function repeatedly<T>(work: () => Promise<T>): Promise<T> {
  for (let left = TRIES - 1; ; left--) {
    try {
      return await work()
    } catch (error) {
      if (left === 0 || !isOutage(error)) throw error
    }
  }
}
