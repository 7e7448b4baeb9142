// What every page has: its head, and what is shown in place of its content while there is none.

import type { ReactNode } from 'react'
import { useEffect, useState } from 'react'
import { Button } from './button.tsx'
import styles from './page-parts.module.css'

export function PageHead({
  title,
  note,
  children,
}: {
  title: ReactNode
  note?: ReactNode
  children?: ReactNode
}) {
  return (
    <header className={styles.head}>
      <h1 className={styles.title}>{title}</h1>
      <div className={styles.note}>{note}</div>
      <div className={styles.actions}>{children}</div>
    </header>
  )
}

export function Empty({
  title,
  isPage = false,
  children,
}: {
  title: string
  /** It is all that is on the page, which has no other heading. */
  isPage?: boolean
  children?: ReactNode
}) {
  const Heading = isPage ? 'h1' : 'h2'
  return (
    <div className={styles.empty}>
      <Heading>{title}</Heading>
      <div className={styles.emptyText}>{children}</div>
    </div>
  )
}

const SLOW_MS = 3000

/**
 * Placeholder rows of the height of real ones. They appear after a moment, so that fast pages do not flicker, and say so
 * when it takes long. `isPage`: it is all that is on the page.
 */
export function Skeleton({ rows = 8, isPage = false }: { rows?: number; isPage?: boolean }) {
  const [phase, setPhase] = useState<'quick' | 'shown' | 'slow'>('quick')
  useEffect(() => {
    const timers = [setTimeout(() => setPhase('shown'), 150), setTimeout(() => setPhase('slow'), SLOW_MS)]
    return () => timers.forEach(clearTimeout)
  }, [])
  return (
    <div role="status" className={styles.skeleton} data-waiting="">
      {isPage && <h1 className="visually-hidden">Berth</h1>}
      {phase === 'slow' ? (
        <p className={styles.slow}>Still loading: Berth is slow to answer.</p>
      ) : (
        <span className="visually-hidden">Loading</span>
      )}
      {phase !== 'quick' &&
        Array.from({ length: phase === 'slow' ? rows - 1 : rows }, (_, row) => (
          <div key={row} className={styles.bar} />
        ))}
    </div>
  )
}

/** In place of what could not be read. The rest of the page stays. */
export function Failure({
  title,
  text,
  requestId,
  onRetry,
  isFound = false,
  isPage = false,
  children,
}: {
  title: string
  text: string
  requestId?: string | null
  onRetry?: () => void
  /** It is brought into sight: a long form may be scrolled away from it. */
  isFound?: boolean
  /** It is all that is on the page, which has no other heading. */
  isPage?: boolean
  children?: ReactNode
}) {
  const Heading = isPage ? 'h1' : 'h2'
  return (
    <div role="alert" ref={isFound ? bringIntoSight : null} className={styles.failure}>
      <Heading>{title}</Heading>
      {text !== '' && <p>{text}</p>}
      {children}
      {requestId && (
        <p className={styles.request}>
          Request <code>{requestId}</code>
        </p>
      )}
      {onRetry && <Button onClick={onRetry}>Try again</Button>}
    </div>
  )
}

const bringIntoSight = (box: HTMLElement | null) => box?.scrollIntoView({ block: 'nearest' })

export function Card({
  title,
  children,
  action,
}: {
  title: ReactNode
  children: ReactNode
  action?: ReactNode
}) {
  return (
    <section className={styles.card}>
      <div className={styles.cardHead}>
        <h2>{title}</h2>
        {action}
      </div>
      {children}
    </section>
  )
}

export function KeyValue({ rows }: { rows: [label: string, value: ReactNode][] }) {
  return (
    <dl className={styles.pairs}>
      {rows.map(([label, value]) => (
        <div key={label} className={styles.pair}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
