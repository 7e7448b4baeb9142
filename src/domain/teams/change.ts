// Changes the name, region, currency or the bound of egress of a team, by its owners and admins.

import type { App } from '../../app.ts'
import type { TeamChange, TeamChanged } from '../../contract/team.ts'
import { storedEgress } from '../../store/egress.ts'
import { changeTeam } from '../../store/teams.ts'
import type { Caller } from '../credentials/caller.ts'
import { applyAll } from '../egress/apply.ts'
import { narrowUnits } from '../egress/narrow.ts'
import { checkEnforced } from '../policies/enforced.ts'
import { amongPeople } from './lock.ts'
import { toTeamWithBalance } from './to-team.ts'

export async function changeTeamOfCaller(app: App, caller: Caller, change: TeamChange): Promise<TeamChanged> {
  const { egress: bound, ...plain } = change
  await checkEnforced(app, bound)
  const changed = await amongPeople(app, caller, null, async (db, { team, allowed }) => {
    allowed('team.change')
    const egress = bound === undefined ? team.egress : storedEgress(bound)
    await changeTeam(db, { id: team.id, ...plain, egress })
    const narrowed = await narrowUnits(app, db, { teamId: team.id, heldBy: null }, { egress: bound })
    const { name = team.name, region = team.region, currency = team.currency } = change
    return { team: await toTeamWithBalance(db, { ...team, name, region, currency, egress }), narrowed }
  })
  await applyAll(
    app,
    changed.narrowed.map(({ id }) => id),
  )
  return changed
}
