// The API and the background loops, over the database and the engine's socket.

import { join } from 'node:path'
import { createServer } from '../api/server.ts'
import { createApp } from '../app.ts'
import type { Config } from '../config.ts'
import { recover } from '../domain/units/reconcile.ts'
import { connectEngine } from '../engine/socket-client.ts'
import { serveWakes } from '../gateway/wake-server.ts'
import { getAccount } from '../lib/accounts.ts'
import { systemClock } from '../lib/clock.ts'
import { fileFailpoints, noFailpoints } from '../lib/failpoints.ts'
import type { Log } from '../lib/log.ts'
import { type DeliverMail, folderTransport, smtpTransport } from '../lib/mail-transport.ts'
import { startLoops } from '../loops.ts'
import { openDatabase } from '../store/db.ts'
import { engineSocketOf, keyFileIn, mailDirOf, wakeSocketOf } from './channel.ts'
import { openDataKey } from './data-key.ts'
import type { Role } from './role.ts'

export const serverRole: Role = async ({ config, runDir, stateDir, databaseUrl, log }) => {
  const db = openDatabase(databaseUrl, log)
  const app = createApp({
    config,
    db,
    engine: connectEngine({ socketPath: engineSocketOf(runDir) }),
    clock: systemClock,
    log,
    secretKey: await openDataKey({ db, keyFile: keyFileIn(stateDir) }),
    failpoints: config.failpoints ? fileFailpoints(join(stateDir, 'failpoints')) : noFailpoints,
    deliverMail: mailTransport(config, { runDir, log }),
  })
  // Before anyone can ask for a unit, the engine's machines and the database's units must agree.
  await recover(app)
  const loops = startLoops(app)
  const wakes = await serveWakes(app, {
    socketPath: wakeSocketOf(runDir),
    socketGid: (await getAccount('berth-gateway')).gid,
  })
  const server = createServer(app)
  await server.listen(config.apiAddress)
  return {
    stop: async () => {
      await wakes.close()
      await server.close()
      await loops.stop()
      await db.destroy()
    },
  }
}

function mailTransport(
  { mail, dataDir }: Config,
  { runDir, log }: { runDir: string; log: Log },
): DeliverMail {
  const { smtpUrl, from } = mail
  if (smtpUrl !== null) return smtpTransport({ url: smtpUrl, from })
  const onWritten = (file: string) =>
    log.info(
      { file: join(dataDir, 'mail', file) },
      'a mail was written to a file, as BERTH_SMTP_URL is not set',
    )
  return folderTransport({ dir: mailDirOf(runDir), from, onWritten })
}
