// Whether a query failed because the database is away, and not because of what was asked.

import pg from 'pg'

/** SQLSTATEs of a server that shuts down, starts up, recovers or has no connection left. */
const awayStates = ['57P01', '57P02', '57P03', '57P05', '53300', '08000', '08003', '08006', '25006']
const socketCodes = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ETIMEDOUT']

export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (error instanceof pg.DatabaseError) return awayStates.includes(code)
  // The driver has no code for these.
  const broken =
    /^Connection terminated|^Client has encountered a connection error|^timeout exceeded when trying to connect/.test(
      error.message,
    )
  return broken || ('syscall' in error && socketCodes.includes(code))
}
