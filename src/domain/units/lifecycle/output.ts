// What a unit prints while it starts, as a sign that something may have changed: most servers say that they are ready.

import type { App } from '../../../app.ts'
import { createNotice } from '../../../lib/concurrency/notice.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

export type Output = {
  /** What was printed until now does not count. */
  forget(): void
  /** Resolves after `atMostMs`, or sooner, but not before `afterMs`, once the unit has printed a line. */
  next(pause: { afterMs: number; atMostMs: number }): Promise<void>
  close(): void
}

/** If the log cannot be followed, as when the engine restarts, nothing seems to be printed. */
export function followOutput(app: App, unit: UnitRecord): Output {
  const closed = new AbortController()
  const printed = createNotice(app.clock)
  let following = false

  async function follow(): Promise<void> {
    const engine = app.fleet.engineOf(unit)
    const [newest] = await engine.logs(unit.id, { after: null, since: null, limit: 1 })
    for await (const _line of engine.followLogs(unit.id, newest?.cursor ?? null, closed.signal))
      printed.notify()
  }

  return {
    forget: () => printed.forget(),
    next: async ({ afterMs, atMostMs }) => {
      if (!following) follow().catch(() => {})
      following = true
      await app.clock.sleep(afterMs)
      await printed.wait(atMostMs - afterMs)
    },
    close: () => closed.abort(),
  }
}
