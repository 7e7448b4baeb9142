// One call. Everything in it was sent by a caller: it is shown as text, in the direction it is written in.

import type { Contract } from '@berth/sdk'
import { useId, useState } from 'react'
import { Code } from '../ui/copy.tsx'
import { Money } from '../ui/format.tsx'
import styles from './audit.module.css'

const clock = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

export function AuditRow({ event }: { event: Contract.AuditEvent }) {
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const { at, credential, action, target, status, errorCode, durationMs, costDeltaCents } = event
  // The caller hung up, as every page does that is left: nobody was refused.
  const isRefused = status === null || (status >= 400 && status !== 499)
  return (
    <li className={styles.row}>
      <button
        type="button"
        className={styles.line}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <time dateTime={at} className={styles.at}>
          {clock.format(new Date(at))}
        </time>
        <span className={styles.who}>
          <bdi>{whoOf(event)}</bdi>
        </span>
        <code className={styles.action}>{action}</code>
        <span className={styles.target}>
          <bdi>{target ?? credential.kind}</bdi>
        </span>
        <span className={isRefused ? styles.refused : styles.fine}>
          {status ?? 'no answer'} {status === 499 ? 'closed' : errorCode}
        </span>
        <span className={styles.took}>{durationMs === null ? '' : `${Math.round(durationMs)} ms`}</span>
        <span className={styles.cost}>
          {costDeltaCents === 0 ? '' : <Money cents={costDeltaCents} short />}
        </span>
      </button>
      <div id={id} hidden={!isOpen}>
        {isOpen && <Code text={JSON.stringify(event, null, 2)} label={`the call ${event.id}`} />}
      </div>
    </li>
  )
}

function whoOf({ credential, agentName, agentVersion }: Contract.AuditEvent): string {
  const program = agentName === null ? '' : `${agentName} ${agentVersion ?? ''}`.trim()
  return program === '' || program === credential.name ? credential.name : `${credential.name} · ${program}`
}
