// A host of a node that is ready, for those who look at hosts and not at what they have.

import type { HostOnNode } from '../../../src/store/host-nodes.ts'

export function hostOnNode(
  node: string,
  { stateSince, seenAt }: Pick<HostOnNode, 'stateSince' | 'seenAt'>,
): HostOnNode {
  return {
    id: `host_${node}`,
    name: node,
    nodeName: node,
    nodeUid: node,
    state: 'ready',
    units: 1,
    stateSince,
    awaySince: null,
    seenAt,
    version: '1',
    certificatesEnd: null,
    cordoned: false,
  }
}
