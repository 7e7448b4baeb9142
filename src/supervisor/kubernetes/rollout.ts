// Rolls the pods of hosts, which their DaemonSet leaves to us (`OnDelete`): once the servers are new, one pod is deleted at a
// time, and the next one only when all hosts have answered again. Units go on meanwhile, and the next pod adopts them.

import { hostname } from 'node:os'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { type Api, deleteObject, type KubeObject, pathOf } from '../../kubernetes/api.ts'
import { followObjects } from '../../kubernetes/follow.ts'
import type { HostOnNode } from '../../store/host-nodes.ts'
import { podsOf } from './anchors.ts'

type PodSpec = { nodeName?: string; containers?: { image?: string }[] }
type Pod = KubeObject & { spec?: PodSpec; status?: { conditions?: { type: string; status: string }[] } }
/** Of the DaemonSet: each version of its template. */
type Revision = KubeObject & { revision?: number; data?: { spec?: { template?: { spec?: PodSpec } } } }

const PART = 'berth.dev/part'
const REVISION = 'controller-revision-hash'

export type Rollout = {
  /** Call it in each round. */
  roll(hosts: HostOnNode[]): Promise<void>
  /** Resolves once it has stopped. */
  stopped: Promise<unknown>
}

export function startRollout(
  { api, namespace, ownPod = hostname() }: { api: Api; namespace: string; ownPod?: string },
  around: { clock: Clock; log: Log; signal: AbortSignal },
): Rollout {
  const { clock, log } = around
  const followed = followObjects<Pod>(
    api,
    { path: podsOf(namespace), query: { labelSelector: PART } },
    around,
  )
  const path = pathOf('apis', 'apps', 'v1', 'namespaces', namespace, 'controllerrevisions')
  const query = { labelSelector: `${PART}=host` }
  const revisions = followObjects<Revision>(api, { path, query }, around)
  /** By uid, since when a pod is known to be ready. */
  let readySince = new Map<string, Date>()

  const roll = async (hosts: HostOnNode[]): Promise<void> => {
    const pods = [...(followed.objects()?.values() ?? [])]
    const newest = [...(revisions.objects()?.values() ?? [])].toSorted(byRevision).at(-1)
    const ready = pods.filter((pod) => isReady(pod)).map(uidOf)
    readySince = new Map(ready.map((uid) => [uid, readySince.get(uid) ?? clock.now()]))
    if (!newest || !isServersOwn(pods, { ownPod, newest })) return
    const hash = newest.metadata.labels?.[REVISION]
    const next = nextToReplace({ hosts, pods: pods.filter(isOf('host')), hash, readySince })
    if (!next) return
    await deleteObject(api, `${podsOf(namespace)}/${next.metadata.name}`, { uid: next.metadata.uid })
    log.info(
      { pod: next.metadata.name, node: next.spec?.nodeName },
      'pod of a host is replaced by a newer one',
    )
  }
  return { roll, stopped: Promise.all([followed.stopped, revisions.stopped]) }
}

/** Whether hosts are to have the image of this server, and all servers have it. */
function isServersOwn(pods: Pod[], { ownPod, newest }: { ownPod: string; newest: Revision }): boolean {
  const servers = pods.filter(isOf('server'))
  const image = imageIn(newest.data?.spec?.template?.spec)
  return (
    servers.some(({ metadata }) => metadata.name === ownPod) &&
    servers.every(({ spec }) => imageIn(spec) === image)
  )
}

/** One that does not run loses nothing; any other waits until no host is away, or has just been replaced. */
function nextToReplace({
  hosts,
  pods,
  hash,
  readySince,
}: {
  hosts: HostOnNode[]
  pods: Pod[]
  hash: string | undefined
  readySince: Map<string, Date>
}): Pod | null {
  const outdated = pods.filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined && metadata.labels?.[REVISION] !== hash,
  )
  const broken = outdated.find((pod) => !isReady(pod))
  if (broken) return broken
  const serves = ({ nodeName, awaySince, seenAt }: HostOnNode): boolean => {
    const pod = pods.find(({ spec }) => spec?.nodeName === nodeName)
    const since = pod && readySince.get(uidOf(pod))
    return awaySince === null && since !== undefined && seenAt !== null && seenAt > since
  }
  const inUse = hosts.filter(({ state }) => state === 'ready' || state === 'draining')
  return (inUse.every(serves) && outdated[0]) || null
}

const isOf = (part: string) => (pod: Pod) => pod.metadata.labels?.[PART] === part
const imageIn = (spec: PodSpec | undefined) => spec?.containers?.[0]?.image
const uidOf = ({ metadata }: Pod) => metadata.uid ?? ''
const byRevision = (one: Revision, other: Revision) => (one.revision ?? 0) - (other.revision ?? 0)

function isReady({ metadata, status }: Pod): boolean {
  if (metadata.deletionTimestamp !== undefined) return false
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false
}
