// Finds an environment of the caller's team. As with units, one of another team gets 403 and an unknown one 404.

import type { App } from '../../app.ts'
import { forbidden, notFound } from '../../contract/errors.ts'
import { isId } from '../../lib/ids.ts'
import {
  findHostedEnvironment,
  hostedEnvironmentExists,
  type HostedRecord,
} from '../../store/hosted-agents.ts'
import type { Caller } from '../credentials/caller.ts'

export async function getHosted(app: App, { teamId }: Caller, id: string): Promise<HostedRecord> {
  if (!isId('hostedEnvironment', id)) throw notFound('hosted environment', id)
  const record = await findHostedEnvironment(app.db, { teamId, id })
  if (record) return record
  if (await hostedEnvironmentExists(app.db, id)) throw forbidden('This environment belongs to another team.')
  throw notFound('hosted environment', id)
}
