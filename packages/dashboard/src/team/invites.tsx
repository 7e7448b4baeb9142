// Invitations that have not been accepted yet.

import type { Contract } from '@berth/sdk'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Time, useNow } from '../ui/format.tsx'
import { callTeam } from './calls.ts'

export function Invites({ invites }: { invites: readonly Contract.Invite[] }) {
  const { team } = useHere()
  const now = useNow()
  const revoke = ({ id, email }: Contract.Invite) =>
    void callTeam(
      team.id,
      { method: 'DELETE', path: `/invites/${encodeURIComponent(id)}` },
      `The invitation of ${email} is taken back`,
    )
  return (
    <DataTable
      label="Invitations"
      rows={invites}
      keyOf={({ id }) => id}
      columns={[
        { head: 'Address', cell: ({ email }) => email },
        { head: 'As', cell: ({ role }) => role },
        {
          head: 'Good until',
          cell: ({ expiresAt }) => (Date.parse(expiresAt) < now ? 'expired' : <Time at={expiresAt} />),
          isExtra: true,
        },
        {
          head: 'Change',
          kind: 'number',
          cell: (invite) =>
            team.role === 'member' ? null : (
              <Button
                onClick={() => revoke(invite)}
                aria-label={`Take back the invitation of ${invite.email}`}
              >
                Take back
              </Button>
            ),
        },
      ]}
    />
  )
}
