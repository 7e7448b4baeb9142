// Which limits of the service were met lately, and by which teams, read from the log (lib/limit-reached.ts).

import { open } from 'node:fs/promises'
import type { Config } from '../config.ts'
import { LIMIT_REACHED } from '../lib/limit-reached.ts'
import { DAY } from '../lib/clock.ts'
import { logPathOf } from '../lib/log.ts'
import { type Check, type Finding, ok, warn } from './check.ts'

/** How much of the newest log file is read, from its end. */
const READ_BYTES = 4 * 1024 * 1024
const MAX_NAMED = 5

export const boundsChecks: Check[] = [{ name: 'bounds met', run: boundsMetFinding }]

async function boundsMetFinding({ dataDir }: Config): Promise<Finding> {
  return boundsFinding(await endOf(logPathOf(dataDir)), new Date())
}

export function boundsFinding(log: string, now: Date): Finding {
  const times = new Map<string, number>()
  for (const line of log.split('\n')) {
    const met = line.includes(LIMIT_REACHED) ? boundIn(line) : null
    if (met === null || now.getTime() - met.atMs > DAY) continue
    times.set(met.what, (times.get(met.what) ?? 0) + met.times)
  }
  if (times.size === 0) return ok('none in the last day')
  const most = [...times].toSorted(([, a], [, b]) => b - a).slice(0, MAX_NAMED)
  const named = most.map(([what, count]) => `${what} (${count} times)`).join(', ')
  const more = times.size > most.length ? `, and ${times.size - most.length} more` : ''
  return warn(
    `in the last day: ${named}${more}`,
    'See "Bounds" in docs/operating.md for what each means, and how to raise it for a team that needs more.',
  )
}

function boundIn(line: string): { what: string; times: number; atMs: number } | null {
  try {
    const { msg, bound, by, times, time } = JSON.parse(line) as Record<string, unknown>
    if (msg !== LIMIT_REACHED || typeof bound !== 'string') return null
    const who = typeof by === 'string' ? ` by ${by}` : ''
    return { what: `${bound}${who}`, times: Number(times), atMs: Date.parse(String(time)) }
  } catch {
    // The first line read may be incomplete.
    return null
  }
}

async function endOf(path: string): Promise<string> {
  const file = await open(path).catch(() => null)
  if (!file) return ''
  try {
    const { size } = await file.stat()
    const start = Math.max(0, size - READ_BYTES)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}
