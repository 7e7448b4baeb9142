// Finds the open invitation of a token. An unknown token takes the same work and gets the same answer as one with a
// wrong secret; the error repeats only the part of the token that is not secret.

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
