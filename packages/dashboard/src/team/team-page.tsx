// The people of the team, and what the team is: members and invitations, its secrets, its name, region and currency,
// leaving and deleting it.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { explain } from '../api/explain.ts'
import { agentsQuery, membersQuery } from '../api/team-queries.ts'
import { LiveMark } from '../shell/live-bar.tsx'
import { useHere } from '../shell/team-context.ts'
import { Card, Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { EndTeam } from './end-team.tsx'
import { Invite, NeedsPlan } from './invite.tsx'
import { Invites } from './invites.tsx'
import { Members } from './members.tsx'
import { Secrets } from './secrets.tsx'
import { TeamForm } from './team-form.tsx'
import styles from './team.module.css'

export function TeamPage() {
  const { team, me } = useHere()
  const { data, error, refetch } = useQuery(membersQuery(team.id))
  const seats = useQuery(agentsQuery(team.id)).data?.seats
  return (
    <>
      <PageHead
        title={<bdi>{team.name}</bdi>}
        note={
          <>
            <span>{team.plan} plan</span>
            {seats && (
              <span>
                {seats.used} of {seats.max} seats for agents
              </span>
            )}
          </>
        }
      >
        <LiveMark />
      </PageHead>
      <div className={styles.page}>
        {error !== null ? (
          <Failure {...explain(error)} onRetry={() => void refetch()} />
        ) : data === undefined ? (
          <Skeleton rows={4} />
        ) : (
          <>
            <Card title="Members">
              <Members members={data.members} />
              {data.members.length === 1 && data.invites.length === 0 && (
                <p className={styles.lead}>Only you, so far.</p>
              )}
            </Card>
            {mayLead(team) && (
              <Card title="Invite someone">{team.plan === 'hobby' ? <NeedsPlan /> : <Invitation />}</Card>
            )}
            {data.invites.length > 0 && (
              <Card title="Invitations">
                <Invites invites={data.invites} />
              </Card>
            )}
          </>
        )}
        <Secrets mayChange={mayLead(team)} />
        <Card title="General">
          <TeamForm regions={me.regions} />
        </Card>
        <EndTeam isLast={me.teams.length < 2} />
      </div>
    </>
  )
}

function Invitation() {
  return (
    <>
      <Invite />
      <p className={styles.lead}>
        Berth mails them a link. Without a mail server, the operator finds it in <code>mail</code> of the data
        directory.
      </p>
    </>
  )
}

export const mayLead = ({ role }: Pick<Contract.Team, 'role'>) => role === 'owner' || role === 'admin'
