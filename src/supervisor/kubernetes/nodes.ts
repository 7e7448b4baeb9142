// What becomes of nodes becomes of their hosts: a cordon drains, a node that is deleted or out of service is lost. A node
// that is not ready is neither, since its units may run on.

import type { Kysely } from 'kysely'
import type { Log } from '../../lib/log.ts'
import { isCordoned, isOutOfService, type Node } from '../../kubernetes/node.ts'
import type { Objects } from '../../kubernetes/follow.ts'
import type { Database } from '../../store/db.ts'
import { type HostOnNode, setCordoned, setHostNode } from '../../store/host-nodes.ts'
import { setHostState } from '../../store/hosts.ts'

type Around = {
  db: Kysely<Database>
  log: Log
  now: () => Date
  /** Asks the API server for a node, as it is at this moment. */
  readNode: (name: string) => Promise<Node | null>
}

/** @param nodes Complete: one that is not there has been deleted. */
export async function followNodes(
  around: Around,
  { hosts, nodes }: { hosts: HostOnNode[]; nodes: Objects<Node> },
): Promise<void> {
  for (const host of hosts) {
    if (host.state === 'lost') continue
    const node = nodes.get(host.nodeName) ?? null
    if (whyLost(host, node) !== null) await giveUp(around, host)
    else if (node) await followNode(around, host, node)
  }
}

async function giveUp({ db, log, now, readNode }: Around, host: HostOnNode): Promise<void> {
  // As the operator's command: one that answers is not lost, whatever is said of its node.
  if (host.awaySince === null) return
  // What is known may be from before the node was registered.
  const why = whyLost(host, await readNode(host.nodeName))
  if (why === null) return
  if (await setHostState(db, { id: host.id, from: ['joining', 'ready', 'draining'], to: 'lost', at: now() }))
    log.warn({ host: host.name, hostId: host.id, why }, 'host is given up, as its node is')
}

async function followNode({ db, log, now }: Around, host: HostOnNode, node: Node): Promise<void> {
  const { uid } = node.metadata
  // The same machine has been registered again.
  if (uid !== undefined && uid !== host.nodeUid)
    await setHostNode(db, { name: host.name, node: { name: host.nodeName, uid } })
  const cordoned = isCordoned(node)
  if (cordoned !== host.cordoned && (await setCordoned(db, { id: host.id, cordoned, at: now() })))
    log.info({ host: host.name, hostId: host.id, cordoned }, 'host follows its node')
}

function whyLost({ awaySince, nodeUid }: HostOnNode, node: Node | null): string | null {
  if (!node) return 'its node was deleted'
  if (isOutOfService(node)) return 'its node is out of service'
  return awaySince !== null && node.metadata.uid !== nodeUid ? 'another node has its name' : null
}
