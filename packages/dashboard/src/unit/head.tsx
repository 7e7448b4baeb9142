// The head of a unit's page: name, state and when it sleeps, its URL, and the one thing that is done most.

import type { Contract } from '@berth/sdk'
import { Link } from '@tanstack/react-router'
import Ellipsis from 'lucide-react/icons/ellipsis'
import ExternalLink from 'lucide-react/icons/external-link'
import { whyNot } from '../api/unit-can.ts'
import { LiveMark } from '../shell/live-bar.tsx'
import { useTeam } from '../shell/team-context.ts'
import { Button, buttonClass } from '../ui/button.tsx'
import { Copied } from '../ui/copy.tsx'
import { useNow } from '../ui/format.tsx'
import { Menu } from '../ui/menu.tsx'
import { State } from '../ui/state.tsx'
import type { QuickAction } from '../units/actions.ts'
import { reasonOf } from '../units/sentence.ts'
import styles from './head.module.css'

export function UnitHead({
  unit,
  busy,
  onRun,
  onStop,
}: {
  unit: Contract.Unit
  /** The action that is under way. */
  busy: QuickAction | null
  onRun: (action: QuickAction) => void
  onStop: () => void
}) {
  const team = useTeam()
  const now = useNow()
  const isStartable = unit.state === 'stopped' || unit.state === 'sleeping'
  return (
    <header className={styles.head}>
      <div className={styles.title}>
        <h1>
          <bdi>{unit.name}</bdi>
        </h1>
        <State state={unit.state} />
        <span className={styles.reason}>{reasonOf(unit, now)}</span>
        <LiveMark />
      </div>
      <div className={styles.actions}>
        <Menu
          label="More actions"
          items={[
            { label: 'Sleep now', why: whyNot(unit, 'sleep'), onSelect: () => onRun('sleep') },
            { label: 'Stop…', why: whyNot(unit, 'stop'), onSelect: onStop },
          ]}
        >
          <Ellipsis aria-hidden="true" />
        </Menu>
        <Button why={whyNot(unit, 'fork')} busy={busy === 'fork'} onClick={() => onRun('fork')}>
          Fork
        </Button>
        {isStartable ? (
          <Button kind="main" busy={busy === 'start'} onClick={() => onRun('start')}>
            {unit.state === 'sleeping' ? 'Wake' : 'Start'}
          </Button>
        ) : (
          <Link
            to="/t/$team/units/$id/terminal"
            params={{ team: team.slug, id: unit.id }}
            className={buttonClass('main')}
          >
            Terminal
          </Link>
        )}
      </div>
      <Urls unit={unit} />
    </header>
  )
}

/** It has its line also where nothing is published, so that nothing moves. */
function Urls({ unit: { endpoints, image, size } }: { unit: Contract.Unit }) {
  return (
    <div className={styles.urls}>
      {endpoints.length === 0 && (
        <span className={styles.what}>
          {size} · {image}
        </span>
      )}
      {endpoints.map(({ id, protocol, mode, url }) => (
        <span key={id} className={styles.url}>
          <Copied text={url} label={`Copy the ${protocol} URL`} />
          {/^https?:\/\//.test(url) && (
            <a href={url} target="_blank" rel="noopener noreferrer" className={buttonClass()}>
              Open <ExternalLink aria-hidden="true" />
            </a>
          )}
          <span className={styles.what}>{mode}</span>
        </span>
      ))}
    </div>
  )
}
