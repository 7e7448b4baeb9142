// A token for one unit, which acts as the credential that it was made for and is worth nothing elsewhere. It is not
// stored: the same credential and unit give the same token, and revoking the credential ends it.

import { timingSafeEqual } from 'node:crypto'
import type { App } from '../../app.ts'
import { isId } from '../../lib/ids.ts'
import { credentialsOfUnit } from '../../store/presented-credentials.ts'

const MARK = 'berth_unit_'
const FORM = /^berth_unit_([0-9a-f]{32})_([0-9a-f]{64})$/

type Named = { unitId: string; credentialId: string }

export function unitTokenOf({ secretKey }: Pick<App, 'secretKey'>, { unitId, credentialId }: Named): string {
  const mac = secretKey.mac(['token for one unit', unitId, credentialId]).toString('hex')
  return `${MARK}${credentialId.slice('cred_'.length)}_${mac}`
}

/** Returns the credential that the token acts as; null if it is not one for this unit. */
export function credentialOfUnitToken(
  app: Pick<App, 'secretKey'>,
  { token, unitId }: { token: string; unitId: string },
): string | null {
  const hex = FORM.exec(token)?.[1]
  if (hex === undefined || !isId('unit', unitId)) return null
  const credentialId = `cred_${hex}`
  const expected = Buffer.from(unitTokenOf(app, { unitId, credentialId }))
  return timingSafeEqual(expected, Buffer.from(token)) ? credentialId : null
}

/** More credentials than this a team hardly has; the oldest of them can sign nothing. */
const MAX_SIGNERS = 200

/** Returns the tokens that credentials of the unit's team may have for it. */
export async function unitTokens(app: Pick<App, 'db' | 'secretKey'>, unitId: string): Promise<string[]> {
  if (!isId('unit', unitId)) return []
  const credentials = await credentialsOfUnit(app.db, { unitId, limit: MAX_SIGNERS })
  return credentials.map((credentialId) => unitTokenOf(app, { unitId, credentialId }))
}
