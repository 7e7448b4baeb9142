// Creates an account: a person and their personal team.

import type { Kysely } from 'kysely'
import { newId } from '../../lib/ids.ts'
import type { Database } from '../../store/db.ts'
import { insertTeam, insertUser, type Plan } from '../../store/teams.ts'
import { grantFreeCredits } from '../credits/grant.ts'

export type NewAccount = {
  email: string
  name: string
  admin: boolean
  plan: Plan
  paysAsItGoes: boolean
  /** The free credits for an address that is new to the service. */
  freeCreditsCents: number
  createdAt: Date
}

/** Call it in a transaction. Returns the ids of the user and of the personal team. */
export async function createAccount(
  db: Kysely<Database>,
  account: NewAccount,
): Promise<{ userId: string; teamId: string }> {
  const { createdAt } = account
  const userId = newId('user')
  const teamId = newId('team')
  await insertUser(db, {
    id: userId,
    email: account.email,
    name: account.name,
    admin: account.admin,
    createdAt,
  })
  await insertTeam(db, {
    id: teamId,
    // Ids are unique, so the slug of a personal team is never taken.
    slug: teamId.replace('_', '-'),
    name: `${account.name}'s team`.slice(0, 60),
    personal: true,
    plan: account.plan,
    paysAsItGoes: account.paysAsItGoes,
    ownerId: userId,
    createdAt,
  })
  await grantFreeCredits(db, {
    teamId,
    email: account.email,
    cents: account.freeCreditsCents,
    at: createdAt,
  })
  return { userId, teamId }
}
