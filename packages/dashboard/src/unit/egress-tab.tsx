// What the unit may reach, the names that it was refused, each with a button that allows it, and what it reached.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { putEgress } from '../api/apply-event.ts'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { byteSize } from '../../../../src/lib/byte-size.ts'
import { Time } from '../ui/format.tsx'
import { Card, Failure, Skeleton } from '../ui/page-parts.tsx'
import { tell } from '../ui/toast.tsx'
import { EgressForm } from './egress-form.tsx'
import { PublishForm } from './publish-form.tsx'
import { Refused } from './refused.tsx'
import { type RefusedName, refusedNames } from './refused-names.ts'
import { useUnit } from './unit-context.ts'
import { type Line, useEgressLog } from './use-egress-log.ts'
import type { StreamStatus } from './use-stream.ts'
import styles from './unit.module.css'

const SHOWN_NAMES = 12
const SHOWN_LINES = 100
const lostText = 'Connection lost. Reconnecting…'

export function EgressTab() {
  const unit = useUnit()
  const { team } = useHere()
  const { lines, status, again } = useEgressLog({ team: team.id, unit })
  return (
    <div className={styles.settings}>
      <div className={styles.column}>
        <Card title="Outbound access">
          <EgressForm key={unit.egress.version} unit={unit} />
        </Card>
        <Card title="Publish a port">
          <PublishForm unit={unit} />
        </Card>
      </div>
      <Card title="Refused connections">
        <RefusedNames unit={unit} names={refusedNames(lines, unit.egress.allow)} />
      </Card>
      <div className={styles.all}>
        <Card title="The last seven days">
          <Log unit={unit} lines={lines} status={status} onRetry={again} />
        </Card>
      </div>
    </div>
  )
}

function RefusedNames({ unit, names }: { unit: Contract.Unit; names: RefusedName[] }) {
  const { team } = useHere()
  const { mutate, error, isPending, variables } = useMutation({
    mutationFn: async (entry: string) => await berthOf(team.id).units.of(unit).allowEgress(entry),
    onSuccess: (answer, entry) => {
      const { appliedAt: _, ...egress } = answer
      putEgress(team.id, unit.id, egress)
      tell(`${unit.name} may reach ${entry}`)
    },
  })
  if (unit.egress.mode === 'open') return <p className={styles.quiet}>It may reach every public host.</p>
  if (names.length === 0)
    return (
      <p className={styles.quiet}>
        None yet. A refused host appears here within seconds, with a button to allow it.
      </p>
    )
  const more = names.length - SHOWN_NAMES
  return (
    <>
      <Refused error={error} />
      <ul className={styles.names} aria-label="Refused names">
        {names.slice(0, SHOWN_NAMES).map(({ entry, count, at }) => (
          <li key={entry} className={styles.name}>
            <code className={styles.entry}>{entry}</code>
            <span className={styles.quiet}>
              {count === 1 ? 'once' : `${count} times`}, <Time at={at} />
            </span>
            <Button
              busy={isPending && variables === entry}
              aria-label={`Allow ${entry}`}
              onClick={() => mutate(entry)}
            >
              Allow
            </Button>
          </li>
        ))}
      </ul>
      {more > 0 && <p className={styles.after}>And {more} more, below.</p>}
    </>
  )
}

const columns: readonly Column<Line>[] = [
  {
    head: 'Minute',
    cell: ({ at }) => (
      <span className={styles.minute}>
        <Time at={at} />
      </span>
    ),
    isExtra: true,
  },
  {
    head: 'Decision',
    cell: ({ decision }) => <span className={decision === 'refused' ? styles.stderr : ''}>{decision}</span>,
  },
  {
    head: 'Host',
    cell: ({ host, port, count }) => (
      <code className={styles.entry}>
        {host ?? (count === 0 ? 'all' : port === null ? 'others' : 'no name')}
        {port === null ? '' : `:${port}`}
      </code>
    ),
  },
  { head: 'Times', cell: ({ count }) => count, kind: 'number' },
  { head: 'In', cell: (line) => bytesOf(line, line.bytesIn), kind: 'number', isExtra: true },
  { head: 'Out', cell: (line) => bytesOf(line, line.bytesOut), kind: 'number', isExtra: true },
  {
    head: 'Why',
    cell: ({ reason, secret }) => (secret === null ? reason : `${reason} With ${secret}.`),
    isExtra: true,
  },
]

function bytesOf({ decision, protocol }: Line, count: number): string {
  return decision === 'refused' || protocol === 'dns' ? '–' : byteSize(count)
}

function Log({
  unit,
  lines,
  status,
  onRetry,
}: {
  unit: Contract.Unit
  lines: readonly Line[]
  status: StreamStatus
  onRetry: () => void
}) {
  if (status.is === 'failed') return <Failure {...explain(status.error)} onRetry={onRetry} />
  if (lines.length === 0 && status.is === 'reading') return <Skeleton rows={4} />
  if (lines.length === 0 && status.is === 'lost') return <p className={styles.quiet}>{lostText}</p>
  if (lines.length === 0)
    return (
      <p className={styles.quiet}>
        {unit.egress.mode === 'open'
          ? 'Connections are listed once it may reach only some hosts.'
          : 'Nothing yet. Connections to ports 80 and 443 and refused look-ups come here as they happen.'}
      </p>
    )
  return (
    <>
      {status.is === 'lost' && <p className={styles.quiet}>{lostText}</p>}
      <DataTable
        label="Connections"
        columns={columns}
        rows={lines.slice(0, SHOWN_LINES)}
        keyOf={({ key }) => key}
      />
      {lines.length > SHOWN_LINES && (
        <p className={styles.after}>
          The newest {SHOWN_LINES}; <code>berth egress log {unit.name}</code> has all.
        </p>
      )}
    </>
  )
}
