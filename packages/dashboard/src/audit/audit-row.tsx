// One call as a sentence. Everything in it was sent by a caller: it is shown as text, in the direction it is written in.

import type { Contract } from '@berth/sdk'
import { Copied, Code } from '../ui/copy.tsx'
import { Money } from '../ui/format.tsx'
import { KeyValue } from '../ui/page-parts.tsx'
import { Sentence } from './change-list.tsx'
import { refusalOf } from '../../../../src/contract/audit-sentences.ts'
import styles from './audit.module.css'

const clock = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

export function AuditRow({
  event,
  nameOf,
  here,
  isOpen,
  isBeside,
  onOpen,
}: {
  event: Contract.AuditEvent
  nameOf: (id: string) => string | undefined
  here?: string | undefined
  isOpen: boolean
  /** Its details are shown beside the list. */
  isBeside: boolean
  onOpen: () => void
}) {
  const id = `call-${event.id}`
  return (
    <li className={styles.row}>
      <div className={`${styles.line} ${isOpen ? styles.open : ''}`}>
        <time dateTime={event.at} className={styles.at}>
          {clock.format(new Date(event.at))}
        </time>
        <span className={styles.said}>
          <Sentence event={event} nameOf={nameOf} here={here} />
        </span>
        <span className={styles.cost}>
          {event.costDeltaCents === 0 ? '' : <Money cents={event.costDeltaCents} short />}
        </span>
        <button
          type="button"
          className={styles.more}
          aria-expanded={isOpen}
          aria-controls={isOpen ? id : undefined}
          aria-label={`Details of ${event.action}, ${clock.format(new Date(event.at))}`}
          onClick={onOpen}
        >
          Details
        </button>
      </div>
      {isOpen && !isBeside && (
        <div id={id} className={styles.inline}>
          <CallDetails event={event} />
        </div>
      )}
    </li>
  )
}

export function CallDetails({ event }: { event: Contract.AuditEvent }) {
  const { action, target, credential, agentName, agentVersion, via, status, durationMs, requestId } = event
  const program = agentName === null ? '' : `${agentName} ${agentVersion ?? ''}`.trim()
  const result = refusalOf(event) ?? (status === 499 ? 'the caller hung up' : 'done')
  const rows: [string, React.ReactNode][] = [
    ['Action', <code key="action">{action}</code>],
    ['Target', target === null ? '' : <Copied key="target" text={target} label="Copy the target" />],
    [
      'Who',
      <bdi key="who">
        {credential.name} ({credential.kind})
      </bdi>,
    ],
    ['Program', program === '' ? '' : <bdi key="program">{program}</bdi>],
    ['Through', via],
    ['Result', `${result}${status === null ? '' : `, ${status}`}`],
    ['Took', durationMs === null ? '' : `${Math.round(durationMs)} ms`],
    ['Request', <Copied key="request" text={requestId} label="Copy the request ID" />],
  ]
  return (
    <div className={styles.details}>
      <KeyValue rows={rows.filter(([, value]) => value !== '')} />
      <Code text={JSON.stringify(event, null, 2)} label={`the call ${event.id}`} />
    </div>
  )
}
