// What a recipe has made. Its passwords are in this one answer, so leaving asks first.

import type { Contract } from '@berth/sdk'
import { Link, useBlocker } from '@tanstack/react-router'
import { useState } from 'react'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { PageHead } from '../ui/page-parts.tsx'
import { State } from '../ui/state.tsx'
import { Outputs } from './outputs.tsx'
import styles from './recipes.module.css'

export function Made({ title, made }: { title: string; made: Contract.RunResult }) {
  const team = useTeam()
  const hasSecrets = Object.keys(made.outputs).length > 0
  const [isKept, keep] = useState(!hasSecrets)
  const { proceed, reset, status } = useBlocker({
    shouldBlockFn: () => !isKept,
    enableBeforeUnload: () => !isKept,
    withResolver: true,
  })
  return (
    <>
      <PageHead title={title} note={made.costLine} />
      <div className={styles.page}>
        <Outputs outputs={made.outputs} />
        {hasSecrets && (
          <div>
            <Button kind="main" why={isKept ? 'You said so.' : null} onClick={() => keep(true)}>
              I have kept them
            </Button>
          </div>
        )}
        <ul className={styles.units}>
          {made.units.map((unit) => (
            <li key={unit.id}>
              <Link to="/t/$team/units" params={{ team: team.slug }} search={{ q: unit.name }}>
                <bdi>{unit.name}</bdi>
              </Link>{' '}
              <State state={unit.state} />
            </li>
          ))}
        </ul>
      </div>
      <Confirm
        title="Leave without keeping them?"
        action="Leave"
        isOpen={status === 'blocked'}
        onClose={() => reset?.()}
        onConfirm={async () => await Promise.resolve(proceed?.())}
      >
        <p>The passwords on this page are shown this once. Nobody can see them again.</p>
      </Confirm>
    </>
  )
}
