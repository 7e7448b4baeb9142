// Shows each host as an object `Host`, for `kubectl get hosts.berth.dev`. Only what changed is written, and at most every
// ten seconds. It also is the owner of the host's anchor.

import { type Clock, SECOND } from '../../lib/clock.ts'
import {
  type Api,
  changeObject,
  createObject,
  deleteObject,
  type KubeObject,
  pathOf,
} from '../../kubernetes/api.ts'
import type { HostOnNode } from '../../store/host-nodes.ts'

type HostObject = KubeObject & { spec: { node: string }; status?: Record<string, unknown> }

const WRITE_EVERY_MS = 10 * SECOND
/** More would be too much for what reads such lists. */
const MAX_OBJECTS = 1000

export const hostObjectsOf = (namespace: string) =>
  pathOf('apis', 'berth.dev', 'v1alpha1', 'namespaces', namespace, 'hosts')

export type HostObjects = {
  show(hosts: HostOnNode[]): Promise<void>
  /** Null for a host whose object is not there yet. */
  uidOf(host: string): string | null
}

export function createHostObjects({
  api,
  namespace,
  clock,
}: {
  api: Api
  namespace: string
  clock: Clock
}): HostObjects {
  const path = hostObjectsOf(namespace)
  /** By name, the uid of what is there. */
  let present = new Map<string, string>()
  /** By uid, the status that was written last. */
  const written = new Map<string, string>()
  let lookedMs = -Infinity

  const look = async (): Promise<void> => {
    const { items } = (await api.call({ method: 'GET', path })) as { items: KubeObject[] }
    present = new Map(items.map(({ metadata }) => [metadata.name, metadata.uid ?? '']))
  }
  const make = async ({ name, nodeName }: HostOnNode): Promise<void> => {
    const object = {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Host',
      metadata: { name },
      spec: { node: nodeName },
    }
    await createObject(api, path, object)
  }

  return {
    uidOf: (host) => present.get(host) ?? null,
    show: async (hosts) => {
      const wanted = hosts.slice(0, MAX_OBJECTS)
      const nowMs = clock.monotonicMs()
      const isDue = nowMs - lookedMs >= WRITE_EVERY_MS
      if (!isDue && wanted.every(({ name }) => present.has(name))) return
      lookedMs = nowMs
      await look()
      const missing = wanted.filter(({ name }) => !present.has(name))
      for (const host of missing) await make(host)
      if (missing.length > 0) await look()
      for (const [name, uid] of present) {
        if (wanted.some((host) => host.name === name)) continue
        await deleteObject(api, `${path}/${name}`, { uid })
        written.delete(uid)
      }
      for (const host of wanted) {
        const [status, uid] = [statusOf(host), present.get(host.name) ?? '']
        if (written.get(uid) === JSON.stringify(status)) continue
        const change = (found: HostObject) => ({ ...found, status })
        await changeObject<HostObject>(api, { path: `${path}/${host.name}/status`, change, clock })
        written.set(uid, JSON.stringify(status))
      }
    },
  }
}

function statusOf({ state, stateSince, awaySince, units, version, certificatesEnd }: HostOnNode) {
  const isAway = awaySince !== null && (state === 'ready' || state === 'draining')
  return {
    state: isAway ? 'away' : state,
    since: (isAway ? awaySince : stateSince).toISOString(),
    units,
    ...(version === null ? {} : { version }),
    ...(certificatesEnd === null ? {} : { certificatesEnd: certificatesEnd.toISOString() }),
  }
}
