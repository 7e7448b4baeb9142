// Members with their roles. After one is removed, the keys that they made are still valid: each is shown with its end.

import type { Contract } from '@berth/sdk'
import { useState } from 'react'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Select } from '../ui/field.tsx'
import { Time } from '../ui/format.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import { CALLS_END } from '../ui/sentences.ts'
import { callTeam } from './calls.ts'
import styles from './team.module.css'

const roles = ['owner', 'admin', 'member'] as const
type Keys = Contract.MemberRemoved['keysToReview']

export function Members({ members }: { members: readonly Contract.Member[] }) {
  const { team, me } = useHere()
  const [leaving, setLeaving] = useState<Contract.Member | null>(null)
  const [toReview, review] = useState<Keys>([])
  const remove = async ({ userId, name }: Contract.Member) => {
    const removed = await callTeam<Contract.MemberRemoved>(
      team.id,
      { method: 'DELETE', path: `/members/${encodeURIComponent(userId)}` },
      `${name} is no member any more`,
    )
    if (removed) review(removed.keysToReview)
  }
  return (
    <>
      <DataTable
        label="Members"
        rows={members}
        keyOf={({ userId }) => userId}
        columns={[
          {
            head: 'Name',
            cell: ({ name, userId }) => <bdi>{userId === me.user.id ? `${name} (you)` : name}</bdi>,
          },
          { head: 'Address', cell: ({ email }) => email, isExtra: true },
          { head: 'Role', cell: (member) => <Role member={member} /> },
          { head: 'Joined', cell: ({ joinedAt }) => <Time at={joinedAt} />, isExtra: true },
          {
            head: 'Change',
            kind: 'number',
            cell: (member) =>
              member.userId !== me.user.id && member.role !== 'owner' && team.role !== 'member' ? (
                <Button kind="danger" onClick={() => setLeaving(member)} aria-label={`Remove ${member.name}`}>
                  Remove…
                </Button>
              ) : null,
          },
        ]}
      />
      <Confirm
        title={`Remove ${leaving?.name ?? ''}?`}
        action="Remove"
        isOpen={leaving !== null}
        onClose={() => setLeaving(null)}
        onConfirm={async () => {
          if (leaving) await remove(leaving)
        }}
      >
        <p>
          They can no longer see or change anything of this team. Keys that they made stay valid until you
          revoke them.
        </p>
      </Confirm>
      {toReview.length > 0 && (
        <Review keys={toReview} onDone={(id) => review(toReview.filter((key) => key.id !== id))} />
      )}
    </>
  )
}

function Role({ member }: { member: Contract.Member }) {
  const { team } = useHere()
  // A personal team has one owner, its person; everybody else in it is admin or member.
  const choices = team.personal ? roles.filter((role) => role !== 'owner') : roles
  if (team.role !== 'owner' || (team.personal && member.role === 'owner')) return member.role
  return (
    <Select
      aria-label={`Role of ${member.name}`}
      value={member.role}
      options={choices.map((role) => ({ value: role, label: role }))}
      onChange={(role) =>
        void callTeam(
          team.id,
          { method: 'PATCH', path: `/members/${encodeURIComponent(member.userId)}`, body: { role } },
          `${member.name} is ${role} now`,
        )
      }
    />
  )
}

function Review({ keys, onDone }: { keys: Keys; onDone: (id: string) => void }) {
  const { team } = useHere()
  const [asked, ask] = useState<Keys[number] | null>(null)
  const revoke = async ({ id, name }: Keys[number]) => {
    try {
      await berthOf(team.id).request('DELETE', `/v1/agents/${encodeURIComponent(id)}`)
      tell(`Revoked ${name}`)
      onDone(id)
    } catch (error) {
      tellError(explain(error))
    }
  }
  return (
    <div className={styles.review} role="status">
      <p>Keys that this person made are still valid. Revoke those that they must not use any more.</p>
      <ul>
        {keys.map((key) => (
          <li key={key.id} className={styles.key}>
            <span>
              <bdi>{key.name}</bdi> <code>{key.prefix}…</code>
            </span>
            <Button kind="danger" onClick={() => ask(key)} aria-label={`Revoke ${key.name}…`}>
              Revoke…
            </Button>
          </li>
        ))}
      </ul>
      <Confirm
        title={`Revoke ${asked?.name}?`}
        action="Revoke"
        isOpen={asked !== null}
        onClose={() => ask(null)}
        onConfirm={async () => {
          if (asked) await revoke(asked)
        }}
      >
        <p>{CALLS_END} This cannot be undone.</p>
      </Confirm>
    </div>
  )
}
