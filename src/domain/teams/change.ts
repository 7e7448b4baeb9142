// Changes the name, region or currency of a team, by its owners and admins.

import type { App } from '../../app.ts'
import type { TeamAnswer, TeamChange } from '../../contract/team.ts'
import { changeTeam } from '../../store/teams.ts'
import type { Caller } from '../credentials/caller.ts'
import { amongPeople } from './lock.ts'
import { toTeamWithBalance } from './to-team.ts'

export async function changeTeamOfCaller(app: App, caller: Caller, change: TeamChange): Promise<TeamAnswer> {
  return await amongPeople(app, caller, null, async (db, { team, allowed }) => {
    allowed('team.change')
    await changeTeam(db, { id: team.id, ...change })
    const { name = team.name, region = team.region, currency = team.currency } = change
    return { team: await toTeamWithBalance(db, { ...team, name, region, currency }) }
  })
}
