// The supervisor's part of a server in a pod: it alone reads the key of the fleet's authority and the pod's token.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { openApi } from '../../kubernetes/api.ts'
import { openDatabase } from '../../store/db.ts'
import type { Running, Service } from '../restart-policy.ts'

/** Where Kubernetes puts what a pod needs for the API server. */
const POD_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Null where membership is the operator's. */
export function kubernetesPart(
  {
    config: { kubernetes, hostsAddress: link, dataDir },
    databaseUrl,
    log,
  }: { config: Config; databaseUrl: string; log: Log },
  podDirectory = POD_DIRECTORY,
): Service | null {
  if (!kubernetes || !link) return null
  const start = async (): Promise<Running> => {
    const { startMembership } = await import('./membership.ts')
    const inPod = (name: string) => join(podDirectory, name)
    const namespace = (await readFile(inPod('namespace'), 'utf8')).trim()
    const api = openApi({ ...kubernetes.api, caFile: inPod('ca.crt'), tokenFile: inPod('token') })
    const db = openDatabase(databaseUrl, log)
    const { door, anchorImage } = kubernetes
    const around = { dataDir, api, namespace, db, clock: systemClock, log }
    const membership = await startMembership({ ...around, door, link, anchorImage })
    return {
      ended: membership.ended.then(
        () => 'ended',
        (error: unknown) => String(error),
      ),
      stop: async () => {
        await membership.stop()
        api.close()
        await db.destroy()
      },
    }
  }
  return { name: 'membership by Kubernetes', start }
}
