// Membership by Kubernetes (decisions/joining.md): pods of a DaemonSet join as hosts at a door that stays open, and what
// becomes of a node becomes of its host. Nothing of it is on the way of a create, an exec, a wake or a visit: while the API
// server is away, hosts are what they were, and no other can join.

import type { Kysely } from 'kysely'
import { type Clock, SECOND } from '../../lib/clock.ts'
import { runLoop } from '../../lib/loop.ts'
import type { Log } from '../../lib/log.ts'
import type { Address } from '../../lib/setting-values.ts'
import { type Api, getObject, pathOf } from '../../kubernetes/api.ts'
import { followObjects } from '../../kubernetes/follow.ts'
import { type Node, NODES } from '../../kubernetes/node.ts'
import type { Database } from '../../store/db.ts'
import { listHostsOnNodes } from '../../store/host-nodes.ts'
import { serveDoor } from '../join/door.ts'
import { enterHost } from '../join/enter.ts'
import { admitPods } from './admission.ts'
import { ANCHOR_LABEL, type AnchorPod, podsOf, setAnchors } from './anchors.ts'
import { showAuthority } from './authority-map.ts'
import { createHostObjects } from './host-objects.ts'
import { followNodes } from './nodes.ts'
import { setPlaceholderCosts } from './placeholders.ts'
import { startRollout } from './rollout.ts'

type Membership = {
  dataDir: string
  api: Api
  namespace: string
  /** Where pods join. */
  door: Address
  /** Where gateways reach the server; `0.0.0.0`: by the name by which they reach the door. */
  link: Address
  /** Of the anchors, which only wait. */
  anchorImage: string
  db: Kysely<Database>
  clock: Clock
  log: Log
  /** Of one of several servers: the others learn which host has which addresses. */
  keepHosts?: () => Promise<void>
}

export type RunningMembership = {
  door: Address
  /** Rejects if it is stuck. */
  ended: Promise<void>
  stop(): Promise<void>
}

const ROUND_MS = SECOND
const ROUND_WITHIN_MS = 60 * SECOND
const SHOW_EVERY_MS = 30 * SECOND

export async function startMembership(membership: Membership): Promise<RunningMembership> {
  const {
    dataDir,
    api,
    namespace,
    anchorImage: image,
    db,
    clock,
    log,
    link,
    keepHosts = async () => {},
  } = membership
  const stop = new AbortController()
  const around = { clock, log, signal: stop.signal }
  const admission = admitPods(api, { namespace, log })
  const door = await serveDoor({
    dataDir,
    at: membership.door,
    link,
    admission,
    enter: async (host) => await keepHosts().then(async () => await enterHost(db, host)),
    log,
  })
  const nodes = followObjects<Node>(api, { path: NODES }, around)
  const query = { labelSelector: `${ANCHOR_LABEL}=true` }
  const anchors = followObjects<AnchorPod>(api, { path: podsOf(namespace), query }, around)
  const objects = createHostObjects({ api, namespace, clock })
  const rollout = startRollout({ api, namespace }, around)

  const round = async (): Promise<void> => {
    const [known, held] = [nodes.objects(), anchors.objects()]
    if (!known || !held) return
    const hosts = await listHostsOnNodes(db)
    const readNode = async (name: string) => await getObject<Node>(api, NODES + pathOf(name))
    await followNodes({ db, log, now: () => clock.now(), readNode }, { hosts, nodes: known })
    await objects.show(hosts)
    const uidOf = (host: string) => objects.uidOf(host)
    await setAnchors({ api, namespace, image, clock, uidOf }, { hosts, nodes: known, anchors: held })
    await rollout.roll(hosts)
  }
  const show = async () => {
    await showAuthority(dataDir, { api, namespace, clock })
    await keepHosts()
    await setPlaceholderCosts({ api, namespace, clock }, await listHostsOnNodes(db))
  }
  const loops = [
    { name: 'nodes of Kubernetes', everyMs: ROUND_MS, timeoutMs: ROUND_WITHIN_MS, run: round },
    {
      name: 'authority and placeholders in Kubernetes',
      everyMs: SHOW_EVERY_MS,
      timeoutMs: ROUND_WITHIN_MS,
      run: show,
    },
  ].map(async (loop) => await runLoop(loop, around))
  return {
    door: door.at,
    ended: Promise.race(loops),
    stop: async () => {
      door.close()
      stop.abort()
      await Promise.allSettled([...loops, nodes.stopped, anchors.stopped, rollout.stopped])
    },
  }
}
