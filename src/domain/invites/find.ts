// The open invitation a token is for. One that was never made costs the same work as one with a wrong secret, and both
// are answered alike; of the token only what is no secret is said again.

import type { App } from '../../app.ts'
import { notFound } from '../../contract/errors.ts'
import { findInvite, type InviteInTeam } from '../../store/invites.ts'
import { tokenMatches, tokenPrefix } from '../credentials/token.ts'

export async function getInviteByToken({ db }: Pick<App, 'db'>, token: string): Promise<InviteInTeam> {
  const prefix = tokenPrefix('invite', token)
  const invite = prefix === null ? null : await findInvite(db, prefix)
  const matches = tokenMatches(token, invite?.hash ?? null)
  if (!invite || !matches) throw notFound('invitation', prefix ?? '')
  return invite
}
