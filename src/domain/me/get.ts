// The signed-in person, and what the dashboard needs first (spec 4.1).

import type { App } from '../../app.ts'
import { unauthorized } from '../../contract/errors.ts'
import type { Me } from '../../contract/me.ts'
import { regions } from '../../contract/region.ts'
import { listTeamsOfUser } from '../../store/teams.ts'
import { findUser } from '../../store/users.ts'
import { creditBalanceCents } from '../billing/balance.ts'
import type { Caller } from '../credentials/caller.ts'
import { longestSleep } from '../policies/check.ts'
import { toTeam } from '../teams/to-team.ts'

export async function getMe({ db, config, payments }: App, { userId, teamId, plan }: Caller): Promise<Me> {
  const [user, teams] =
    userId === null ? [null, []] : await Promise.all([findUser(db, userId), listTeamsOfUser(db, userId)])
  if (user === null) throw unauthorized()
  const balances = await creditBalanceCents(
    db,
    teams.map(({ id }) => id),
  )
  return {
    user,
    teams: teams.map((team) => toTeam(team, balances.get(team.id) ?? 0)),
    currentTeamId: teamId,
    regions,
    freeCreditsOnVerifyCents: config.freeCreditsCents,
    apiUrl: `${config.publicUrl}/v1`,
    support: { form: config.mail.smtpUrl !== null, email: config.supportEmail },
    payments: payments !== null,
    maxSleep: longestSleep({ plan, sleepMax: config.sleepMax }),
  }
}
