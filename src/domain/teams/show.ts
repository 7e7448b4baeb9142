import type { Team } from '../../contract/team.ts'
import type { TeamRecord } from '../../store/teams.ts'

/** As the person sees it whose role is in the record. */
export function showTeam(team: TeamRecord, creditBalanceCents: number): Team {
  const { id, slug, name, personal, plan, region, currency, role, paysAsItGoes } = team
  return { id, slug, name, personal, plan, region, currency, role, creditBalanceCents, paysAsItGoes }
}
