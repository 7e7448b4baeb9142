// Says since when the page has not been live, or that the server has a newer page. Shows nothing while all is well.

import { useSyncExternalStore } from 'react'
import { isOutdated, onOutdated } from '../api/client.ts'
import { liveOf } from '../api/live.ts'
import { buttonClass } from '../ui/button.tsx'
import { timeOfDay, useNow, span } from '../ui/format.tsx'
import { useTeam } from './team-context.ts'
import styles from './live-bar.module.css'

export function LiveBar() {
  const live = liveOf(useTeam().id)
  const status = useSyncExternalStore(live.watch, live.status)
  const outdated = useSyncExternalStore(onOutdated, isOutdated)
  const now = useNow()
  return (
    <div role="status">
      {status.is === 'lost' && (
        <p className={styles.lost}>
          Not live since {timeOfDay(new Date(status.since).toISOString())}
          {now - status.since > 10_000 && ` (${span(now - status.since)})`}: what is shown may be old. Trying
          again.
        </p>
      )}
      {outdated && (
        <p className={styles.outdated}>
          Berth was updated.{' '}
          <button type="button" className={buttonClass('quiet')} onClick={() => location.reload()}>
            Reload this page
          </button>
        </p>
      )}
    </div>
  )
}

/** In the head of a page: whether what is shown is live. */
export function LiveMark() {
  const live = liveOf(useTeam().id)
  const status = useSyncExternalStore(live.watch, live.status)
  const words = { connecting: 'connecting', live: 'live', lost: 'not live' }[status.is]
  return <span className={`${styles.mark} ${styles[status.is]}`}>{words}</span>
}
