// Leaving the team, and deleting it.

import { useState } from 'react'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Card } from '../ui/page-parts.tsx'
import { callTeam } from './calls.ts'
import styles from './team.module.css'

export function EndTeam({ isLast }: { isLast: boolean }) {
  const { team, me } = useHere()
  const [asks, ask] = useState<'leave' | 'delete' | null>(null)
  const end = async (path: string, done: string) => {
    const ended = await callTeam(team.id, { method: 'DELETE', path }, done)
    // Everything of the team is gone from this page: it loads again.
    if (ended !== null) location.assign('/')
  }
  const personal = team.personal ? 'A personal team stays with its account.' : null
  return (
    <Card title="Danger zone">
      <div className={styles.buttons}>
        <Button
          why={team.role === 'owner' ? (personal ?? 'Make someone else the owner first.') : null}
          onClick={() => ask('leave')}
        >
          Leave the team…
        </Button>
        <Button
          kind="danger"
          why={
            personal ??
            (team.role === 'owner' ? (isLast ? 'It is your only team.' : null) : 'Only its owner can.')
          }
          onClick={() => ask('delete')}
        >
          Delete the team…
        </Button>
      </div>
      <Confirm
        title={`Leave ${team.name}?`}
        action="Leave"
        isOpen={asks === 'leave'}
        onClose={() => ask(null)}
        onConfirm={async () =>
          await end(
            `/members/${encodeURIComponent(me.user.id)}`,
            `You are no member of ${team.name} any more`,
          )
        }
      >
        <p>You lose access to it. Keys that you made stay with the team.</p>
      </Confirm>
      <Confirm
        title={`Delete ${team.name}?`}
        action="Delete everything"
        word={team.name}
        isOpen={asks === 'delete'}
        onClose={() => ask(null)}
        onConfirm={async () => await end('', `${team.name} is deleted`)}
      >
        <p>Its units and their disks, its endpoints, keys, members and credits are deleted for good.</p>
      </Confirm>
    </Card>
  )
}
