// Shows each host as an object `Host`, for `kubectl get hosts.berth.dev`. Only what changed is written, and at most every
// ten seconds; nothing reads it back.

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
const MAX_OBJECTS = 500

export const hostObjectsOf = (namespace: string) =>
  pathOf('apis', 'berth.dev', 'v1alpha1', 'namespaces', namespace, 'hosts')

export type HostObjects = { show(hosts: HostOnNode[]): Promise<void> }

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
  /** By name, what was written last; null before what is there was read. */
  let shown: Map<string, string> | null = null
  let writtenMs = -Infinity

  const write = async (host: HostOnNode, status: Record<string, unknown>): Promise<void> => {
    await createObject(api, path, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Host',
      metadata: { name: host.name },
      spec: { node: host.nodeName },
    } as KubeObject)
    const change = (found: HostObject) => ({ ...found, status })
    await changeObject<HostObject>(api, { path: `${path}/${host.name}/status`, change, clock })
  }

  return {
    show: async (hosts) => {
      const nowMs = clock.monotonicMs()
      if (nowMs - writtenMs < WRITE_EVERY_MS) return
      writtenMs = nowMs
      const wanted = new Map(hosts.slice(0, MAX_OBJECTS).map((host) => [host.name, host]))
      if (!shown) {
        const { items } = (await api.call({ method: 'GET', path })) as { items: KubeObject[] }
        shown = new Map(items.map(({ metadata }) => [metadata.name, '']))
      }
      for (const name of shown.keys()) {
        if (wanted.has(name)) continue
        await deleteObject(api, `${path}/${name}`, {})
        shown.delete(name)
      }
      for (const [name, host] of wanted) {
        const status = statusOf(host)
        const text = JSON.stringify(status)
        if (shown.get(name) === text) continue
        await write(host, status)
        shown.set(name, text)
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
