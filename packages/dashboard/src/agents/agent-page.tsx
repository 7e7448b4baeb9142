// One agent: what it may do, what it did, and its end.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { cache, keys } from '../api/cache.ts'
import { agentsQuery } from '../api/team-queries.ts'
import { AuditRows } from '../audit/audit-rows.tsx'
import { useTeam } from '../shell/team-context.ts'
import { Button, buttonClass } from '../ui/button.tsx'
import { Copied } from '../ui/copy.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { euros } from '../../../../src/lib/money.ts'
import { Money, Time } from '../ui/format.tsx'
import { Card, Empty, Failure, KeyValue, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import { CALLS_END } from '../ui/sentences.ts'
import { usedBy } from './agent-use.ts'
import { PolicyEditor } from './policy-editor.tsx'
import { type Policy, sentence } from './policy-text.ts'
import styles from './agents.module.css'

export function AgentPage() {
  const { id } = useParams({ strict: false })
  const team = useTeam()
  const { data, error, refetch, isFetching } = useQuery(agentsQuery(team.id))
  // While it ends the page stays as it was: it is left for the list, and nothing on it jumps meanwhile.
  const [ending, setEnding] = useState<Contract.Agent | null>(null)
  const agent = ending !== null && ending.id === id ? ending : data?.agents.find((each) => each.id === id)
  // One that was made a moment ago is in the list that is being read.
  const isRead = data !== undefined && (agent !== undefined || !isFetching)
  if (error !== null || !isRead)
    return (
      <>
        <PageHead title="Agent" />
        {error === null ? <Skeleton /> : <Failure {...explain(error)} onRetry={() => void refetch()} />}
      </>
    )
  if (agent === undefined)
    return (
      <Empty title="There is no such agent in this team" isPage>
        <Link to="/t/$team/agents" params={{ team: team.slug }} className={buttonClass()}>
          All agents
        </Link>
      </Empty>
    )
  const policy = agent.policy as Policy
  return (
    <>
      <PageHead title={<bdi>{agent.name}</bdi>} note={noteOf(agent)}>
        {agent.revokedAt === null && <Revoke agent={agent} onEnding={setEnding} />}
      </PageHead>
      <div className={styles.page}>
        <Card title="Limits">
          <p className={styles.sentence}>{sentence(policy)}</p>
          {agent.revokedAt === null && (
            <PolicyEditor key={agent.id} team={team.id} agent={agent} use={usedBy(agent)} />
          )}
        </Card>
        <Card title="Details">
          <KeyValue rows={aboutOf(agent)} />
        </Card>
        <Card title="Activity">
          <AuditRows asked={{ agent: agent.id }} />
        </Card>
      </div>
    </>
  )
}

function noteOf(agent: Contract.Agent) {
  if (agent.revokedAt !== null) return 'revoked'
  const { dailySpendCapCents, maxConcurrentUnits } = agent.policy as Policy
  const { spentTodayCents, liveUnits } = usedBy(agent)
  if (spentTodayCents === null || liveUnits === null) return null
  return (
    <>
      <span>
        <Money cents={spentTodayCents} /> of {euros(dailySpendCapCents)} today
      </span>
      <span>
        {liveUnits} of {maxConcurrentUnits} units
      </span>
    </>
  )
}

function aboutOf(agent: Contract.Agent): [string, ReactNode][] {
  const rows: [string, ReactNode][] = [
    ['Kind', agent.kind === 'key' ? 'key' : 'connected program'],
    ['Id', <Copied key="id" text={agent.id} label="Copy the id" />],
  ]
  if (agent.prefix !== null) rows.push(['Begins with', <code key="prefix">{agent.prefix}</code>])
  if (agent.client) rows.push(['Program', <bdi key="client">{agent.client.name ?? agent.client.id}</bdi>])
  if (agent.agent) rows.push(['Used by', `${agent.agent.title} ${agent.agent.version ?? ''}`])
  const maker = agent.createdBy?.name ?? agent.createdBy?.email
  if (maker !== null && maker !== undefined) rows.push(['Created by', <bdi key="maker">{maker}</bdi>])
  rows.push(['Created', <Time key="made" at={agent.createdAt} />])
  rows.push(['Last used', agent.lastUsedAt === null ? 'not yet' : <Time key="used" at={agent.lastUsedAt} />])
  return rows
}

function Revoke({
  agent,
  onEnding,
}: {
  agent: Contract.Agent
  onEnding: (agent: Contract.Agent | null) => void
}) {
  const team = useTeam()
  const navigate = useNavigate()
  const [isOpen, setOpen] = useState(false)
  const revoke = async () => {
    onEnding(agent)
    try {
      const path = `/v1/agents/${encodeURIComponent(agent.id)}`
      await berthOf(team.id).request('DELETE', path)
      const revokedAt = new Date().toISOString()
      // The list is without it from its first moment on: a row that leaves later moves what is below.
      await cache.cancelQueries({ queryKey: keys.agents(team.id) })
      cache.setQueryData<Contract.AgentList>(
        keys.agents(team.id),
        (old) =>
          old && {
            ...old,
            agents: old.agents.map((each) => (each.id === agent.id ? { ...each, revokedAt } : each)),
          },
      )
    } catch (error) {
      onEnding(null)
      tellError(explain(error))
      return
    }
    tell(`Revoked ${agent.name}`)
    void cache.invalidateQueries({ queryKey: keys.agents(team.id) })
    await navigate({ to: '/t/$team/agents', params: { team: team.slug } })
  }
  return (
    <>
      <Button kind="danger" onClick={() => setOpen(true)}>
        Revoke…
      </Button>
      <Confirm
        title={`Revoke ${agent.name}?`}
        action="Revoke"
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        onConfirm={revoke}
      >
        <p>{CALLS_END} Its units stay with the team. This cannot be undone.</p>
      </Confirm>
    </>
  )
}
