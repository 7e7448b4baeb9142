// The supervisor's part of a server in a pod: it alone reads the key of the fleet's authority and the pod's token.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import type { Kysely } from 'kysely'
import { MINUTE, SECOND, systemClock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { runLoop } from '../../lib/loop.ts'
import type { Address } from '../../lib/setting-values.ts'
import { type Api, openApi } from '../../kubernetes/api.ts'
import { getAccount } from '../../lib/system-users.ts'
import { rotateKeyFile } from '../../processes/data-key.ts'
import { type Database, openDatabase } from '../../store/db.ts'
import type { Running, Service } from '../restart-policy.ts'
import { keeperOfKey, keepHosts, shareKeys, takeHosts, takeKeys } from './kept-keys.ts'

/** Where Kubernetes puts what a pod needs for the API server. */
const POD_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount'

const TAKE_KEYS_MS = 20 * SECOND

/** Null where membership is the operator's. */
export function kubernetesPart(
  {
    config: { kubernetes, hostsAddress: link, dataDir, serverAddress },
    databaseUrl,
    log,
  }: { config: Config; databaseUrl: string; log: Log },
  podDirectory = POD_DIRECTORY,
): Service | null {
  if (!kubernetes || !link) return null
  const start = async (): Promise<Running> => {
    const { startMembership } = await import('./membership.ts')
    const { api, namespace } = await openFromPod(kubernetes.api, podDirectory)
    if (serverAddress) await takeHosts(dataDir, { api, namespace, owner: await getAccount('berth') })
    const db = openDatabase(databaseUrl, log)
    const { door, anchorImage } = kubernetes
    const around = { dataDir, api, namespace, db, clock: systemClock, log }
    const membership = await startMembership({
      ...around,
      door,
      link,
      anchorImage,
      ...(serverAddress && { keepHosts: async () => await keepHosts(dataDir, around) }),
    })
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

/** Of one of several servers in a cluster, before anything uses the keys: those that all of them have. */
export async function shareKeysFromPod(
  { kubernetes, dataDir }: Config,
  makeAuthority: () => Promise<void>,
  podDirectory = POD_DIRECTORY,
): Promise<void> {
  if (!kubernetes) return
  const { api, namespace } = await openFromPod(kubernetes.api, podDirectory)
  try {
    await shareKeys(dataDir, { api, namespace, owner: await getAccount('berth') }, makeAuthority)
  } finally {
    api.close()
  }
}

/** Of one of several servers in a cluster: it has the key of the secrets that another one has rotated. */
export function keysPart(
  { config, log }: { config: Config; log: Log },
  podDirectory = POD_DIRECTORY,
): Service | null {
  const { kubernetes, dataDir } = config
  if (!kubernetes) return null
  const start = async (): Promise<Running> => {
    const { api, namespace } = await openFromPod(kubernetes.api, podDirectory)
    const owner = await getAccount('berth')
    const stop = new AbortController()
    const run = async () => await takeKeys(dataDir, { api, namespace, owner })
    const loop = { name: 'keys in Kubernetes', everyMs: TAKE_KEYS_MS, timeoutMs: MINUTE, run }
    const running = runLoop(loop, { clock: systemClock, log, signal: stop.signal })
    return {
      ended: running.then(() => 'ended', String),
      stop: async () => {
        stop.abort()
        await running.catch(() => {})
        api.close()
      },
    }
  }
  return { name: 'keys in Kubernetes', start }
}

/** Rotates the key of the secrets, for all servers in the cluster. */
export async function rotateKeyFromPod(
  { config, db, keyFile }: { config: Config; db: Kysely<Database>; keyFile: string },
  podDirectory = POD_DIRECTORY,
): Promise<{ from: string; to: string }> {
  const { kubernetes, serverAddress, dataDir } = config
  if (!kubernetes || !serverAddress) return await rotateKeyFile({ db, keyFile })
  const { api, namespace } = await openFromPod(kubernetes.api, podDirectory)
  const around = { api, namespace, owner: await getAccount('berth'), clock: systemClock }
  return await rotateKeyFile({ db, keyFile }, keeperOfKey(dataDir, around)).finally(() => api.close())
}

async function openFromPod(at: Address, podDirectory: string): Promise<{ api: Api; namespace: string }> {
  const inPod = (name: string) => join(podDirectory, name)
  const namespace = (await readFile(inPod('namespace'), 'utf8')).trim()
  return { api: openApi({ ...at, caFile: inPod('ca.crt'), tokenFile: inPod('token') }), namespace }
}
