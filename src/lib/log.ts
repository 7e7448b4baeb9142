// Structured logs, one JSON line an event. Callers hand over fields they chose, never whole requests:
// what a caller sends must not reach a log line.

import { join } from 'node:path'
import { pino, type Logger } from 'pino'
import { openLogDestination } from './log-destination.ts'

export type Log = Logger

const MAX_FRAMES = 8
const MAX_MESSAGE = 500
const MAX_CAUSES = 3

/** What all processes log, as JSON lines. */
export function logPathOf(dataDir: string): string {
  return join(dataDir, 'logs/berth.log')
}

/** A logger to standard error or another descriptor: standard output stays for what a person should read. */
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
 * What is logged of an error, as `err`. Not all it carries: Postgres puts the very row that it refused into a property,
 * and of a runtime's complaint the beginning is enough (reliability S22, S23).
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

/** Only behind the message, of which any line may look like a frame. */
function framesOf({ stack = '', message }: Error): string[] {
  const start = stack.indexOf(message)
  if (start < 0) return []
  return stack
    .slice(start + message.length)
    .split('\n')
    .flatMap((line) => /^ {4}at (.+)$/.exec(line)?.[1] ?? [])
    .slice(0, MAX_FRAMES)
}
