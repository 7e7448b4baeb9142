// One pod on the node of each host that has units or disks. It does nothing but stand for them: `kubectl drain` leaves the
// pods of DaemonSets alone and autoscalers take a node with only these for empty, so without it both would go on and delete
// the node with all its units. Its budget lets no eviction pass; it is deleted once the host is empty.

import { type Clock, SECOND } from '../../lib/clock.ts'
import { type Api, createObject, deleteObject, type KubeObject, pathOf } from '../../kubernetes/api.ts'
import type { Node } from '../../kubernetes/node.ts'
import type { Objects } from '../../kubernetes/follow.ts'
import type { HostOnNode } from '../../store/host-nodes.ts'

export type AnchorPod = KubeObject & { spec?: { nodeName?: string }; status?: { phase?: string } }

export const ANCHOR_LABEL = 'berth.dev/anchor'
/** No drain: a create that began before it may still come. */
const SETTLED_MS = 5 * SECOND
/** It has nothing to end. */
const GRACE_S = 1

export const podsOf = (namespace: string) => pathOf('api', 'v1', 'namespaces', namespace, 'pods')

type Around = {
  api: Api
  namespace: string
  image: string
  clock: Clock
  /** Of the host's object (host-objects.ts), which owns its anchor: `kubectl drain` refuses pods that nothing owns. */
  uidOf: (host: string) => string | null
}

/** Makes the anchors as they are to be. */
export async function setAnchors(
  { api, namespace, image, clock, uidOf }: Around,
  { hosts, nodes, anchors }: { hosts: HostOnNode[]; nodes: Objects<Node>; anchors: Objects<AnchorPod> },
): Promise<void> {
  const wanted = new Map(
    hosts.flatMap((host) => (isHeld(host, nodes, anchors, clock) ? [[nameOf(host), host] as const] : [])),
  )
  for (const { metadata, spec, status } of anchors.values()) {
    const host = wanted.get(metadata.name)
    const isRight =
      host?.nodeName === spec?.nodeName && status?.phase !== 'Failed' && status?.phase !== 'Succeeded'
    if (host && isRight) continue
    // Of a node that is gone, no kubelet ends it.
    const graceS = nodes.has(spec?.nodeName ?? '') ? GRACE_S : 0
    if (metadata.deletionTimestamp === undefined || graceS === 0)
      await deleteObject(api, `${podsOf(namespace)}/${metadata.name}`, { uid: metadata.uid, graceS })
  }
  const present = new Set([...anchors.values()].map(({ metadata }) => metadata.name))
  for (const [name, host] of wanted) {
    const uid = uidOf(host.name)
    if (uid === null || present.has(name)) continue
    await createObject(api, podsOf(namespace), anchorOf(host, { image, uid }))
  }
}

const nameOf = ({ name }: Pick<HostOnNode, 'name'>) => `berth-anchor-${name}`

function isHeld(host: HostOnNode, nodes: Objects<Node>, anchors: Objects<AnchorPod>, clock: Clock): boolean {
  if (host.state === 'lost' || !nodes.has(host.nodeName)) return false
  if (host.units > 0) return true
  const isAnchored = [...anchors.values()].some(({ metadata }) => metadata.name === nameOf(host))
  const drainedMs = clock.now().getTime() - host.stateSince.getTime()
  return isAnchored && host.state === 'draining' && drainedMs < SETTLED_MS
}

/** Placed by us, not by the scheduler: it must come to a node that is cordoned, tainted or full too. */
function anchorOf(host: HostOnNode, { image, uid }: { image: string; uid: string }): KubeObject {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: nameOf(host),
      labels: { [ANCHOR_LABEL]: 'true', 'berth.dev/host': host.name },
      ownerReferences: [
        { apiVersion: 'berth.dev/v1alpha1', kind: 'Host', name: host.name, uid, controller: true },
      ],
      annotations: {
        'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
        'karpenter.sh/do-not-disrupt': 'true',
      },
    },
    spec: {
      nodeName: host.nodeName,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: GRACE_S,
      tolerations: [{ operator: 'Exists' }],
      securityContext: { runAsNonRoot: true, runAsUser: 65534, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'anchor',
          image,
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          resources: { requests: { cpu: '1m', memory: '4Mi' }, limits: { memory: '16Mi' } },
        },
      ],
    },
  }
  return pod
}
