// What Berth reads of a node of Kubernetes.

import { createHash } from 'node:crypto'
import { isHostName } from '../lib/fleet-identity.ts'
import type { KubeObject } from './api.ts'

export type Node = KubeObject & {
  spec?: { unschedulable?: boolean; taints?: { key: string; effect: string; value?: string }[] }
}

export const NODES = '/api/v1/nodes'

/** Set by people, or by what looks after machines, once a node is known to be gone for good. */
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service'

export function isCordoned({ spec }: Node): boolean {
  return spec?.unschedulable === true
}

export function isOutOfService({ spec }: Node): boolean {
  return spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) ?? false
}

const HASH_LENGTH = 8
const LONGEST = 32

/** The node's own name, or, where that cannot be a host's, its beginning and a hash of it. */
export function hostNameOf(node: string): string {
  if (isHostName(node)) return node
  const hash = createHash('sha256').update(node).digest('hex').slice(0, HASH_LENGTH)
  const start = node
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]/g, '-')
    .slice(0, LONGEST - HASH_LENGTH - 1)
  return `${start}-${hash}`
}
