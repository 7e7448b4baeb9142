// The last lines of the unit's log, live.

import type { Contract } from '@berth/sdk'
import { Link } from '@tanstack/react-router'
import { useTeam } from '../shell/team-context.ts'
import { Card } from '../ui/page-parts.tsx'
import { plainText } from './log-text.ts'
import { useLog } from './use-log.ts'
import styles from './unit.module.css'

const LINES = 8

export function LastLines({ unit }: { unit: Contract.Unit }) {
  const team = useTeam()
  const { lines, status } = useLog({ team: team.id, unit, isPaused: false })
  const last = lines.slice(-LINES)
  return (
    <Card
      title="Log"
      action={
        <Link to="/t/$team/units/$id/logs" params={{ team: team.slug, id: unit.id }}>
          All lines
        </Link>
      }
    >
      <pre className={styles.last} tabIndex={0} role="region" aria-label="Last lines of the log">
        {last.length === 0
          ? status.is === 'reading'
            ? ''
            : 'No output yet.'
          : last.map((line) => (
              <span key={line.number} className={line.stream === 'stderr' ? styles.stderr : ''}>
                {plainText(line.text)}
                {'\n'}
              </span>
            ))}
      </pre>
    </Card>
  )
}
