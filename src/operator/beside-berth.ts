// Code that the operator's commands share. They run as root next to a running Berth, use its database, and write a line to
// its log.

import { type Kysely, sql } from 'kysely'
import type { Config } from '../config.ts'
import { createLog, type Log, silentLog } from '../lib/log.ts'
import { type Database, openDatabase } from '../store/db.ts'
import { readCredentials } from '../supervisor/credentials-file.ts'
import { findInstance, postgresSocketDir, runDirOf } from '../supervisor/instance.ts'
import { openLogFile } from '../supervisor/log-file.ts'
import { postgresUrl } from '../supervisor/postgres.ts'

type Inside = {
  db: Kysely<Database>
  log: Log
  /** The public URL of the service. */
  baseUrl: string
}

/** Throws a sentence for the operator. */
export async function runBesideBerth<T>(config: Config, work: (inside: Inside) => Promise<T>): Promise<T> {
  const instance = await findInstance(config.dataDir)
  const credentials = await readCredentials(config.dataDir)
  // Of several servers none keeps a key of its own.
  if (!instance || !(credentials || config.serverAddress)) {
    throw new Error(`Berth has not been started on ${config.dataDir} yet: run "npm start" first, as root.`)
  }
  const embedded = postgresUrl(postgresSocketDir(runDirOf(instance)), 'berth')
  const db = openDatabase(config.databaseUrl ?? embedded, silentLog)
  const logFile = await openLogFile(config.dataDir)
  try {
    await sql`select 1`.execute(db).catch((cause: unknown) => {
      const message = `The database of Berth does not answer: check that Berth is running. (${String(cause)})`
      throw new Error(message, { cause })
    })
    const log = createLog('operator', config.logLevel, logFile.descriptor)
    return await work({ db, log, baseUrl: credentials?.baseUrl ?? config.publicUrl })
  } finally {
    await logFile.close()
    await db.destroy()
  }
}
