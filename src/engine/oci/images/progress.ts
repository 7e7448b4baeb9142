// How far each pull is, for its watchers. A pull without a stage has nothing to do, since its image is here, and is not
// told of. Watchers get all others, at most once a second: what they ask of a pull costs it nothing.

import { EventEmitter, once } from 'node:events'
import { type Clock, SECOND } from '../../../lib/clock.ts'
import {
  type OnPulls,
  PULL_LINE_LENGTH,
  PULL_LINES,
  type PullProgress,
  type PullStage,
} from '../../pull-progress.ts'

export type ProgressOfPull = {
  /** `bytes` is asked as often as a watcher is told. */
  begin(stage: PullStage, bytes?: () => PullProgress['bytes']): void
  line(text: string): void
  end(): void
}

export type PullBoard = {
  /** `machines` returns those that wait for it now. */
  open(machines: () => string[]): ProgressOfPull
  watch(onPulls: OnPulls, signal: AbortSignal): Promise<void>
}

type Entry = {
  machines: () => string[]
  stage: PullStage
  sinceMs: number
  bytes: () => PullProgress['bytes']
  lines: string[]
}

export function createPullBoard(clock: Clock): PullBoard {
  const entries = new Set<Entry>()
  const events = new EventEmitter<{ began: [] }>().setMaxListeners(0)

  const snapshot = (): PullProgress[] =>
    [...entries]
      .map(({ machines, stage, sinceMs, bytes, lines }) => ({
        machines: machines(),
        stage,
        ageMs: Math.max(0, Math.round(clock.monotonicMs() - sinceMs)),
        bytes: bytes(),
        lines: [...lines],
      }))
      .filter(({ machines }) => machines.length > 0)

  return {
    open: (machines) => {
      const entry: Entry = { machines, stage: 'waiting', sinceMs: 0, bytes: () => null, lines: [] }
      return {
        begin: (stage, bytes = () => null) => {
          Object.assign(entry, { stage, sinceMs: clock.monotonicMs(), bytes })
          entries.add(entry)
          events.emit('began')
        },
        line: (text) => {
          entry.lines.push(text.slice(0, PULL_LINE_LENGTH))
          if (entry.lines.length > PULL_LINES) entry.lines.shift()
        },
        end: () => void entries.delete(entry),
      }
    },
    watch: async (onPulls, signal) => {
      let told = '[]'
      while (!signal.aborted) {
        const pulls = snapshot()
        const text = JSON.stringify(pulls.map((pull) => ({ ...pull, ageMs: 0 })))
        if (text !== told) onPulls(pulls)
        told = text
        const next = entries.size > 0 ? clock.sleep(SECOND, signal) : once(events, 'began', { signal })
        await next.catch(() => {})
      }
    },
  }
}
