// Structured logs, one JSON line an event. Callers hand over fields they chose, never whole requests:
// what a caller sends must not reach a log line.

import { pino, type Logger } from 'pino'

export type Log = Logger

/** A logger to standard error or another descriptor: standard output stays for what a person should read. */
export function createLog(role: string, level: string, fd = 2): Log {
  return pino(
    { level, base: { role, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd, sync: true }),
  )
}

export const silentLog: Log = pino({ level: 'silent' })
