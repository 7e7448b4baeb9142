// Hosts' pods trust the door by the certificate of the fleet's authority. The server shows it in a ConfigMap, which the chart
// mounts into them: they have no token for the API server.

import { readFile } from 'node:fs/promises'
import { fleetAuthorityFile } from '../../certificates/fleet-ca.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Api, changeObject, createObject, type KubeObject, pathOf } from '../../kubernetes/api.ts'

type ConfigMap = KubeObject & { data?: Record<string, string> }

export const AUTHORITY_MAP = 'berth-fleet'

/** Call it once there is an authority. */
export async function showAuthority(
  dataDir: string,
  { api, namespace, clock }: { api: Api; namespace: string; clock: Clock },
): Promise<void> {
  const data = { 'ca.crt': await readFile(fleetAuthorityFile(dataDir), 'utf8') }
  const path = pathOf('api', 'v1', 'namespaces', namespace, 'configmaps')
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: AUTHORITY_MAP }, data }
  if (await createObject(api, path, map)) return
  const change = (found: ConfigMap) => (found.data?.['ca.crt'] === data['ca.crt'] ? null : { ...found, data })
  await changeObject<ConfigMap>(api, { path: `${path}/${AUTHORITY_MAP}`, change, clock })
}
