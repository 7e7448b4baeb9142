// Creates a team that the caller owns. The caller must own a team on the Pro plan or above, or operate the service; the
// new team gets the best of those plans, so that people can be invited at once (decisions/teams-and-policies.md).

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { forbidden, quotaExceeded, unauthorized } from '../../contract/errors.ts'
import type { TeamAnswer, TeamCreate } from '../../contract/team.ts'
import { newId } from '../../lib/ids.ts'
import type { Database } from '../../store/db.ts'
import { findTeamOfUser, insertTeam, listTeamsOfUser, type Plan } from '../../store/teams.ts'
import { findUser, lockUser } from '../../store/users.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { howPlansChange, planOrder, teamsOf } from './plan-limits.ts'
import { toTeamWithBalance } from './to-team.ts'

/** Throws `forbidden` without such a plan, and `quota_exceeded` if the plan allows no further team. */
export async function createTeam(
  app: App,
  { userId }: Caller,
  { name, region, currency }: TeamCreate,
  once: Once | null,
): Promise<TeamAnswer> {
  if (userId === null) throw unauthorized()
  return await inTransaction(app, async (db) => {
    await once?.claim(db)
    await lockUser(db, userId)
    const isOperator = (await findUser(db, userId))?.admin ?? false
    const plan = await bestPlanWithRoom(db, { userId, isOperator })
    const id = newId('team')
    await insertTeam(db, {
      id,
      slug: slugFor(name, id),
      name,
      personal: false,
      plan,
      // An operator of the service is not billed; everyone else starts with prepaid credits.
      paysAsItGoes: isOperator,
      region,
      currency,
      ownerId: userId,
      createdAt: app.clock.now(),
    })
    const team = await findTeamOfUser(db, { userId, id })
    if (!team) throw new Error('a team was not there right after it was made')
    const answer = { team: await toTeamWithBalance(db, team) }
    await once?.keep(db, answer)
    return answer
  })
}

async function bestPlanWithRoom(
  db: Kysely<Database>,
  { userId, isOperator }: { userId: string; isOperator: boolean },
): Promise<Plan> {
  const owned = (await listTeamsOfUser(db, userId)).filter(({ role }) => role === 'owner')
  // Plans are what the operator allows other people.
  const best = planOrder.findLast((each) => owned.some((team) => team.plan === each)) ?? 'hobby'
  const plan = isOperator ? 'team' : best
  if (plan === 'hobby')
    throw forbidden(`Making a team needs the Pro plan or above in a team that you own; ${howPlansChange}.`)
  const used = owned.filter(({ personal }) => !personal).length
  const max = teamsOf[plan]
  if (used >= max) {
    throw quotaExceeded(`Your plan has room for ${max} teams, and you own ${used}; delete one first.`, {
      field: 'teams',
      used,
      max,
    })
  }
  return plan
}

/** Readable and unique: it ends with the random end of the id. */
function slugFor(name: string, id: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
  return `${words}-${id.slice(-12)}`.replace(/^-+/, '').replace(/-{2,}/g, '-')
}
