// `npm run rotate-key`: another key for the file that opens the secrets in the database, beside a running Berth, as root.

import type { Config } from '../config.ts'
import { silentLog } from '../lib/log.ts'
import { say } from '../lib/terminal.ts'
import { keyFileIn } from '../roles/channel.ts'
import { rotateKeyFile } from '../roles/data-key.ts'
import { openDatabase } from '../store/db.ts'
import { isOutage } from '../store/outage.ts'
import { findInstance, postgresSocketDir, runDirOf } from './instance.ts'
import { postgresUrl } from './postgres.ts'
import { keptStateOf } from './role-command.ts'

export async function rotateKey(config: Config): Promise<number> {
  const instance = await findInstance(config.dataDir)
  if (!instance) throw new Error(`Berth has not been started on ${config.dataDir} yet: there is no key.`)
  const embedded = postgresUrl(postgresSocketDir(runDirOf(instance)), 'berth')
  const db = openDatabase(config.databaseUrl ?? embedded, silentLog)
  const keyFile = keyFileIn(keptStateOf(config.dataDir, 'server'))
  try {
    const { from, to } = await rotateKeyFile({ db, keyFile })
    say(`${keyFile} holds the key ${to} in place of ${from}, and units and calls go on as before.`)
    say('Back it up. Keep the one before as long as you keep backups of the database from before.')
    return 0
  } catch (error) {
    if (!isOutage(error)) throw error
    throw new Error('The database of Berth does not answer: is Berth running?', { cause: error })
  } finally {
    await db.destroy()
  }
}
