// When the wall clock jumps, one transaction shifts every stored time that still matters, and only then does this
// process use the new time (lib/service-clock.ts). The heartbeat's row records which time the service uses, so that
// only one of several processes shifts the times, and a jump while none ran is found.

import type { App } from '../../app.ts'
import { findHeartbeat, lockHeartbeat, saveHeartbeats, SERVICE } from '../../store/heartbeats.ts'
import { moveOpenTimes } from '../../store/open-times.ts'
import { haveSameOffset } from './heartbeat.ts'

/** Call it once, before anything reads the time: continues with the time that the service used last. */
export async function resumeTime(app: App): Promise<void> {
  const { clock } = app
  const last = await findHeartbeat(app.db, SERVICE)
  if (last?.boot === clock.boot) clock.resume(last.offsetMs)
  // The duration of a reboot is unknown, but time must not go back.
  else if (last && last.at > clock.now()) clock.resume(last.at.getTime() - clock.monotonicMs())
  await adoptClockJump(app)
}

/** One run of the background job. */
export async function adoptClockJump(app: App): Promise<void> {
  const { boot } = app.clock
  if (app.clock.jumpedMs() === 0) return
  await app.clock.adoptJump(async ({ from, to, offsetMs }) => {
    const byMs = to.getTime() - from.getTime()
    const moved = await app.db.transaction().execute(async (db) => {
      const last = await lockHeartbeat(db)
      if (last?.boot === boot && haveSameOffset(last, { offsetMs })) return false
      await moveOpenTimes(db, { from, to })
      const at = new Date(last ? last.at.getTime() + byMs : to.getTime())
      await saveHeartbeats(db, [{ id: SERVICE, at }], { boot, offsetMs })
      return true
    })
    app.log.warn({ byMs, moved }, 'wall clock jumped')
  })
}
