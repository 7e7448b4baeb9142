// Structured logs, one JSON line per event. Callers pass chosen fields, never whole requests: nothing that a client
// sends may get into a log line.

import { join } from 'node:path'
import { pino, type Logger } from 'pino'
import { openLogDestination } from './log-destination.ts'

export type Log = Logger

const MAX_FRAMES = 8
const MAX_MESSAGE = 500
const MAX_CAUSES = 3

/** The file with the log lines of all processes. */
export function logPathOf(dataDir: string): string {
  return join(dataDir, 'logs/berth.log')
}

/** Returns a logger to standard error or another descriptor; standard output is for people. */
export function createLog(role: string, level: string, fd = 2): Log {
  return pino(
    {
      level,
      base: { role, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: (error: unknown) => describeError(error) },
    },
    openLogDestination(fd),
  )
}

export const silentLog: Log = pino({ level: 'silent' })

type Described = {
  type: string
  message: string
  code?: string
  syscall?: string
  at: string[]
  cause?: Described
}

/**
 * Returns what to log of an error, as `err`. Not all of its properties: Postgres puts the refused row into one. Long
 * messages of programs are cut (reliability S22, S23).
 */
export function describeError(error: unknown, depth = 0): Described {
  if (!(error instanceof Error))
    return { type: typeof error, message: String(error).slice(0, MAX_MESSAGE), at: [] }
  const { code, syscall } = error as NodeJS.ErrnoException
  return {
    type: error.name,
    message: error.message.slice(0, MAX_MESSAGE),
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof syscall === 'string' ? { syscall } : {}),
    at: framesOf(error),
    ...(error.cause === undefined || depth >= MAX_CAUSES
      ? {}
      : { cause: describeError(error.cause, depth + 1) }),
  }
}

/** Only the part after the message, since any line of a message may look like a stack frame. */
function framesOf({ stack = '', message }: Error): string[] {
  const start = stack.indexOf(message)
  if (start < 0) return []
  return stack
    .slice(start + message.length)
    .split('\n')
    .flatMap((line) => /^ {4}at (.+)$/.exec(line)?.[1] ?? [])
    .slice(0, MAX_FRAMES)
}
