// Placeholders of the chart each take a node for a host. When there are to be fewer, Kubernetes ends first the one of the
// least cost: that on the emptiest host's node, which an autoscaler then removes once the host has no anchor.

import type { Clock } from '../../lib/clock.ts'
import { type Api, changeObject } from '../../kubernetes/api.ts'
import type { HostOnNode } from '../../store/host-nodes.ts'
import { type AnchorPod, podsOf } from './anchors.ts'

export const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost'
const PLACEHOLDERS = 'berth.dev/part=placeholder'

/** Call it now and then. Writes those alone whose cost has changed. */
export async function setPlaceholderCosts(
  { api, namespace, clock }: { api: Api; namespace: string; clock: Clock },
  hosts: HostOnNode[],
): Promise<void> {
  const query = { labelSelector: PLACEHOLDERS }
  const { items } = (await api.call({ method: 'GET', path: podsOf(namespace), query })) as {
    items: AnchorPod[]
  }
  for (const { metadata, spec } of items) {
    if (spec?.nodeName === undefined || metadata.deletionTimestamp !== undefined) continue
    const cost = costOf(hosts.find(({ nodeName }) => nodeName === spec.nodeName))
    if (metadata.annotations?.[DELETION_COST] === cost) continue
    const change = (pod: AnchorPod) => {
      const annotations = { ...pod.metadata.annotations, [DELETION_COST]: cost }
      return { ...pod, metadata: { ...pod.metadata, annotations } }
    }
    await changeObject<AnchorPod>(api, { path: `${podsOf(namespace)}/${metadata.name}`, change, clock })
  }
}

/** By how often the units have doubled: a number for each would be written for each create. */
function costOf(host: HostOnNode | undefined): string {
  if (!host || host.state === 'lost') return '0'
  const units = Math.ceil(Math.log2(host.units + 1))
  return String(host.state === 'draining' ? units : units * 2)
}
