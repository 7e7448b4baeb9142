// Invitations that have not been accepted yet.

import type { Contract } from '@berth/sdk'
import { useState } from 'react'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Time, useNow } from '../ui/format.tsx'
import { callTeam } from './calls.ts'

export function Invites({ invites }: { invites: readonly Contract.Invite[] }) {
  const { team } = useHere()
  const now = useNow()
  const [asked, ask] = useState<Contract.Invite | null>(null)
  const revoke = async ({ id, email }: Contract.Invite) =>
    await callTeam(
      team.id,
      { method: 'DELETE', path: `/invites/${encodeURIComponent(id)}` },
      `Revoked the invitation of ${email}`,
    )
  return (
    <>
      <DataTable
        label="Invitations"
        rows={invites}
        keyOf={({ id }) => id}
        columns={[
          { head: 'Address', cell: ({ email }) => email },
          { head: 'As', cell: ({ role }) => role },
          {
            head: 'Expires',
            cell: ({ expiresAt }) => (Date.parse(expiresAt) < now ? 'expired' : <Time at={expiresAt} />),
            isExtra: true,
          },
          {
            head: 'Change',
            kind: 'number',
            cell: (invite) =>
              team.role === 'member' ? null : (
                <Button onClick={() => ask(invite)} aria-label={`Revoke the invitation of ${invite.email}`}>
                  Revoke…
                </Button>
              ),
          },
        ]}
      />
      <Confirm
        title="Revoke the invitation?"
        action="Revoke"
        isOpen={asked !== null}
        onClose={() => ask(null)}
        onConfirm={async () => {
          if (asked) await revoke(asked)
        }}
      >
        <p>
          The link in the mail to <bdi>{asked?.email}</bdi> ends.
        </p>
      </Confirm>
    </>
  )
}
