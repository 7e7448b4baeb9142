// Notices that files of a directory are written, by inotify: a follower of a log then reads it at once, rather than at
// the next turn of a timer.

import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../../../lib/clock.ts'
import { createNotice } from '../../../lib/concurrency/notice.ts'

export type Writes = {
  /** Resolves after `ms`, or sooner if something was written since the last call; at once when the signal aborts. */
  next(ms: number, signal: AbortSignal): Promise<void>
  close(): void
}

/** Without a watch, as where the kernel has no more of them, `next` takes its whole time. */
export function watchWrites(clock: Clock, directory: string): Writes {
  const written = createNotice(clock)
  const watcher = openWatcher(directory, () => written.notify())
  return {
    next: async (ms, signal) => {
      await written.wait(ms, signal)
      written.forget()
    },
    close: () => watcher?.close(),
  }
}

function openWatcher(directory: string, onWrite: () => void): FSWatcher | null {
  try {
    // Errors come after it was opened too: the directory may be removed.
    return watch(directory, { persistent: false }, onWrite).on('error', () => {})
  } catch {
    return null
  }
}
