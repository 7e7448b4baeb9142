import type { Team } from '../../contract/team.ts'
import type { TeamOfUser } from '../../store/teams.ts'

/** As the person sees it whose role is in the record. */
export function showTeam(team: TeamOfUser, creditBalanceCents: number): Team {
  const { id, slug, name, personal, plan, region, currency, role, paysAsItGoes } = team
  return { id, slug, name, personal, plan, region, currency, role, creditBalanceCents, paysAsItGoes }
}
