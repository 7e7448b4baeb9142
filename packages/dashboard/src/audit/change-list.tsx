// Changes as sentences, newest first: who, what, and where nothing came of it, why. A click opens the whole call.

import type { Contract } from '@berth/sdk'
import { Link } from '@tanstack/react-router'
import { useTeam } from '../shell/team-context.ts'
import { Money, Time } from '../ui/format.tsx'
import { refusalOf, sayCall, whoOf } from '../../../../src/contract/audit-sentences.ts'
import styles from './audit.module.css'

/** The sentence of one call. `here`: the unit whose page this is, which is not named again. */
export function Sentence({
  event,
  nameOf,
  here,
}: {
  event: Contract.AuditEvent
  nameOf: (id: string) => string | undefined
  here?: string | undefined
}) {
  const { verb, detail } = sayCall(event)
  const { target, targetName } = event
  const refusal = refusalOf(event)
  const liveName = target === null ? undefined : nameOf(target)
  return (
    <>
      <bdi className={styles.person}>{whoOf(event)}</bdi> {refusal !== null && 'tried: '}
      {verb}{' '}
      {target === null ? null : target === here ? (
        'this unit'
      ) : (
        <Target id={target} name={liveName} pastName={targetName} />
      )}
      {detail !== undefined && (
        <>
          {' '}
          <code className={styles.detail}>
            <bdi>{detail}</bdi>
          </code>
        </>
      )}
      {refusal !== null && <span className={styles.refused}> {refusal}</span>}
    </>
  )
}

/** `name`: of a unit that is there and has a page; `pastName`: of anything, also if it is gone. */
function Target({ id, name, pastName }: { id: string; name: string | undefined; pastName: string | null }) {
  const { slug } = useTeam()
  if (name === undefined && pastName !== null) return <bdi title={id}>{pastName}</bdi>
  if (name === undefined) return <span className={styles.id}>{id}</span>
  return (
    <Link to="/t/$team/units/$id" params={{ team: slug, id }}>
      <bdi>{name}</bdi>
    </Link>
  )
}

/** What is less of a call is only noise. */
const LEAST_CENTS = 0.1

/** What Berth did by itself. */
export type Moment = { at: string; text: string }

/** The newest, without details. */
export function ChangeList({
  events,
  moments,
  most,
  nameOf,
  here,
}: {
  events: readonly Contract.AuditEvent[]
  moments: readonly Moment[]
  most: number
  nameOf: (id: string) => string | undefined
  here?: string
}) {
  const told = [
    ...events.map((event) => ({
      key: event.id,
      at: event.at,
      cents: event.costDeltaCents,
      said: <Sentence event={event} nameOf={nameOf} here={here} />,
    })),
    ...moments.map(({ at, text }) => ({ key: `${at} ${text}`, at, cents: 0, said: text })),
  ]
  const newest = told.toSorted((one, other) => Date.parse(other.at) - Date.parse(one.at)).slice(0, most)
  return (
    <ol className={styles.changes} aria-label="Changes">
      {newest.map(({ key, at, cents, said }) => (
        <li key={key}>
          <span className={styles.dot} aria-hidden="true" />
          <span className={styles.said}>{said}</span>
          <span className={styles.ago}>
            {cents >= LEAST_CENTS && (
              <>
                <Money cents={cents} /> ·{' '}
              </>
            )}
            <Time at={at} />
          </span>
        </li>
      ))}
    </ol>
  )
}
