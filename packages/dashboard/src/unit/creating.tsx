// A unit that is being created: what is done for it now and since when, and the log of its image's build.

import { describeProgress, type UnitProgress } from '@berth/sdk'
import { useEffect, useState } from 'react'
import { span } from '../ui/format.tsx'
import { Card } from '../ui/page-parts.tsx'
import styles from './unit.module.css'

const imageStages: readonly UnitProgress['stage'][] = ['downloading', 'unpacking', 'building']

export function Creating({ progress }: { progress: UnitProgress }) {
  const { stage, startedAt, bytes, log } = progress
  return (
    <Card title="Being created">
      <p className={styles.stage}>
        <span role="status">{describeProgress(progress)}</span>
        <span className={styles.quiet}>
          <Elapsed since={startedAt} />
        </span>
      </p>
      {bytes && (
        <progress
          className={styles.bytes}
          aria-label="Download of the image"
          value={bytes.done}
          max={bytes.total}
        />
      )}
      {imageStages.includes(stage) && (
        <p className={styles.quiet}>Only the first unit of an image waits for it.</p>
      )}
      {log.length > 0 && (
        <pre
          className={`${styles.output} ${styles.build}`}
          tabIndex={0}
          role="log"
          aria-live="off"
          aria-label="Build of the image"
        >
          <span>{log.join('\n')}</span>
        </pre>
      )}
    </Card>
  )
}

/** Counts the seconds. */
function Elapsed({ since }: { since: string }) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const ms = Math.max(0, now - new Date(since).getTime())
  const minutes = Math.floor(ms / 60_000)
  const seconds = Math.floor(ms / 1000) % 60
  return <>{minutes === 0 ? span(ms) : `${minutes} min ${seconds} s`}</>
}
