import type { Kysely } from 'kysely'
import type { Team } from '../../contract/team.ts'
import { openEgress } from '../../lib/egress/rules.ts'
import type { Database } from '../../store/db.ts'
import type { TeamOfUser } from '../../store/teams.ts'
import { creditBalanceCents } from '../billing/balance.ts'

/** As the person whose role is in the record sees it. */
export function toTeam(team: TeamOfUser, creditBalanceCents: number): Team {
  const { id, slug, name, personal, plan, region, currency, role, paysAsItGoes } = team
  const egress = team.egress ?? openEgress
  return { id, slug, name, personal, plan, region, currency, role, creditBalanceCents, paysAsItGoes, egress }
}

export async function toTeamWithBalance(db: Kysely<Database>, team: TeamOfUser): Promise<Team> {
  const balances = await creditBalanceCents(db, [team.id])
  return toTeam(team, balances.get(team.id) ?? 0)
}
