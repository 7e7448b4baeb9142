// Changes the account of the signed-in person.

import type { App } from '../../app.ts'
import { unauthorized } from '../../contract/errors.ts'
import type { MeChange, MeChanged } from '../../contract/me.ts'
import { renameUser } from '../../store/users.ts'
import type { Caller } from '../credentials/caller.ts'

export async function changeMe({ db }: App, { userId }: Caller, { name }: MeChange): Promise<MeChanged> {
  if (userId === null) throw unauthorized()
  await renameUser(db, { id: userId, name })
  return { id: userId, name }
}
