// Structured logs, one JSON line an event. Callers hand over fields they chose, never whole requests:
// what a caller sends must not reach a log line.

import { pino, type Logger } from 'pino'

export type Log = Logger

/** A logger to standard error, so that standard output stays for what a person should read. */
export function createLog(role: string, level: string): Log {
  return pino(
    { level, base: { role, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  )
}

export const silentLog: Log = pino({ level: 'silent' })
