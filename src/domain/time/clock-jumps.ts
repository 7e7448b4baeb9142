// When the wall clock jumps, every stored time that still matters moves along in one transaction, and only
// then does this process go by the new time (lib/service-clock.ts). The heartbeat's row says which time the
// service goes by, so that of several processes one moves the times, and a jump while none ran is seen.

import type { App } from '../../app.ts'
import { findHeartbeat, lockHeartbeat, saveHeartbeat } from '../../store/heartbeats.ts'
import { moveOpenTimes } from '../../store/open-times.ts'
import { haveSameOffset } from './heartbeat.ts'

/** Once, before anything asks for the time: goes on by the time the service last went by. */
export async function resumeTime(app: App): Promise<void> {
  const { clock } = app
  const last = await findHeartbeat(app.db)
  if (last?.boot === clock.boot) clock.resume(last.offsetMs)
  // Nobody knows how long a reboot took, but it took no less than no time.
  else if (last && last.at > clock.now()) clock.resume(last.at.getTime() - clock.monotonicMs())
  await adoptClockJump(app)
}

/** A loop's round. */
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
      await saveHeartbeat(db, { at, boot, offsetMs })
      return true
    })
    app.log.warn({ byMs, moved }, 'the wall clock of the host jumped')
  })
}
