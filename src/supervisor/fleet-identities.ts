// What the supervisor of the server's machine does for the certificates of the fleet (decisions/joining.md): it alone reads
// the authority's key.

import type { Config } from '../config.ts'
import { prepareServerIdentity } from '../certificates/server-identity.ts'
import type { KeptCertificate } from '../certificates/default.ts'
import { systemClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { ownHostName } from '../lib/own-host-name.ts'
import { getAccount } from '../lib/system-users.ts'
import { identityFileIn, renewalSocketOf } from '../processes/channel.ts'
import { keptStateOf } from './process-command.ts'
import type { Running, Service } from './restart-policy.ts'

/** The gateway beside the server needs one to hand visits over. */
export async function prepareIdentityOf(
  role: 'server' | 'gateway',
  { dataDir }: Config,
  instance: string,
): Promise<KeptCertificate> {
  const file = identityFileIn(keptStateOf(dataDir, role))
  return await prepareServerIdentity({ dataDir, role, host: ownHostName(instance), file, clock: systemClock })
}

type Renewals = { config: Config; runDir: string; databaseUrl: string; log: Log }

/** Signs what hosts ask for, which the server hands over. */
export function renewalsPart({ config, runDir, databaseUrl, log }: Renewals): Service {
  const start = async (): Promise<Running> => {
    // Only with other hosts does this process need what reads the database.
    const { serveRenewals } = await import('./join/renewals.ts')
    const served = await serveRenewals({
      dataDir: config.dataDir,
      socketPath: renewalSocketOf(runDir),
      socketGid: (await getAccount('berth')).gid,
      databaseUrl,
      clock: systemClock,
      log,
    })
    const ended = Promise.withResolvers<string>()
    return {
      ended: ended.promise,
      stop: async () => await served.close().finally(() => ended.resolve('ended')),
    }
  }
  return { name: 'renewal of certificates', start }
}
