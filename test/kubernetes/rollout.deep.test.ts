// An upgrade of the chart in a cluster with a real control plane: its Deployment replaces the servers, and the server that leads the
// pods of hosts, with the rights of the chart. The test is the kubelet of both nodes, and says when hosts have answered.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type Api,
  changeObject,
  createObject,
  deleteObject,
  type KubeObject,
  openApi,
} from '../../src/kubernetes/api.ts'
import { NODES } from '../../src/kubernetes/node.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { type Rollout, startRollout } from '../../src/supervisor/kubernetes/rollout.ts'
import { type ControlPlane, startControlPlane } from '../support/kubernetes/control-plane.ts'
import { hostOnNode } from '../support/kubernetes/host-on-node.ts'
import { firstValues, kubectl, renderChart } from '../support/kubernetes/run.ts'

type Pod = KubeObject & {
  spec: { nodeName?: string; containers: { image: string }[] }
  status?: { conditions?: { type: string; status: string }[] }
}

const NAMESPACE = 'berth'
const NODE_NAMES = ['node-a', 'node-b']
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`
const PART = 'berth.dev/part'
const ROUND_MS = 200
const PATIENCE_MS = 180_000

let plane: ControlPlane
let directory: string
/** Of the cluster's administrator, and of the pod of a server. */
let admin: Api
let server: Api
const stop = new AbortController()
const rollouts: Rollout[] = []
/** Hosts on these nodes do not answer. */
const silent = new Set<string>()
/** What becomes of a host whose pod is deleted: it does not answer for now, or does so once the next one runs. */
let falls: 'silent' | 'back' = 'back'
const seenAt = new Map(NODE_NAMES.map((node) => [node, new Date()]))
/** The most pods of hosts that did not run at once. */
let mostAway = 0

beforeAll(async () => {
  plane = await startControlPlane()
  directory = await mkdtemp(join(tmpdir(), 'berth-rollout-'))
  admin = openApi(plane.access)
  await kubectl(plane.kubeconfig, ['create', 'namespace', NAMESPACE])
  for (const name of NODE_NAMES) await makeNode(name)
  await applyChart('1')
  const tokenFile = join(directory, 'token')
  await writeFile(
    tokenFile,
    await kubectl(plane.kubeconfig, ['create', 'token', 'berth-server', '-n', NAMESPACE]),
  )
  server = openApi({ ...plane.access, tokenFile })
}, 3_600_000)
afterAll(async () => {
  stop.abort()
  for (const { stopped } of rollouts) await stopped
  server?.close()
  admin?.close()
  await plane?.close()
  await rm(directory, { recursive: true })
})

/** With room for a server and a host. */
async function makeNode(name: string): Promise<void> {
  const labels = { 'berth.dev/host': 'true' }
  await createObject(admin, NODES, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels },
  } as KubeObject)
  const room = { cpu: '4', memory: '16Gi', pods: '110' }
  const conditions = [{ type: 'Ready', status: 'True' }]
  await changeObject<KubeObject>(admin, {
    path: `${NODES}/${name}/status`,
    change: (node) => ({ ...node, status: { capacity: room, allocatable: room, conditions } }),
    clock: systemClock,
  })
}

async function applyChart(tag: string): Promise<void> {
  const { stdout } = await renderChart([...firstValues, `image.tag=${tag}`])
  await kubectl(plane.kubeconfig, ['apply', '-n', NAMESPACE, '-f', '-'], stdout)
}

const podsOf = async (part: string): Promise<Pod[]> => {
  const query = { labelSelector: `${PART}=${part}` }
  return ((await admin.call({ method: 'GET', path: PODS, query })) as { items: Pod[] }).items
}
const imageOf = ({ spec }: Pod) => spec.containers[0]?.image
const runs = ({ metadata, status }: Pod) =>
  metadata.deletionTimestamp === undefined &&
  (status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false)

/** Starts the pods that have a node, and removes those that are to end. */
async function actAsKubelet(): Promise<void> {
  for (const pod of [...(await podsOf('server')), ...(await podsOf('host'))]) {
    const { name, uid, deletionTimestamp } = pod.metadata
    if (deletionTimestamp !== undefined) await deleteObject(admin, `${PODS}/${name}`, { graceS: 0, uid })
    else if (pod.spec.nodeName !== undefined && !runs(pod))
      await changeObject<KubeObject>(admin, {
        path: `${PODS}/${name}/status`,
        change: (found) => ({
          ...found,
          status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
        }),
        clock: systemClock,
      })
  }
}

const hostOn = (node: string) =>
  hostOnNode(node, { stateSince: new Date(0), seenAt: seenAt.get(node) ?? null })

async function round(): Promise<void> {
  mostAway = Math.max(mostAway, NODE_NAMES.length - (await podsOf('host')).filter(runs).length)
  await actAsKubelet()
  for (const node of NODE_NAMES) if (!silent.has(node)) seenAt.set(node, new Date())
  for (const rollout of rollouts) await rollout.roll(NODE_NAMES.map(hostOn))
  if (falls === 'silent')
    for (const { metadata, spec } of await podsOf('host'))
      if (metadata.deletionTimestamp !== undefined) silent.add(spec.nodeName ?? '')
  await systemClock.sleep(ROUND_MS)
}

/** Rounds until it holds. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  const endsMs = systemClock.monotonicMs() + PATIENCE_MS
  while (!(await isSo())) {
    if (systemClock.monotonicMs() > endsMs) {
      const shown = await kubectl(plane.kubeconfig, ['get', 'pods', '-n', NAMESPACE, '-o', 'wide'])
      throw new Error(`it did not come so far:\n${shown}`)
    }
    await round()
  }
}

/** As the server whose pod has this name. */
const leadAs = (ownPod: string) =>
  void rollouts.splice(
    0,
    1,
    startRollout(
      { api: server, namespace: NAMESPACE, ownPod },
      { clock: systemClock, log: silentLog, signal: stop.signal },
    ),
  )
const tagged = (tag: string) => (pods: Pod[]) =>
  pods.length === 2 && pods.every((pod) => runs(pod) && imageOf(pod) === `berth:${tag}`)

it('an upgrade replaces the servers first, and then one pod of a host after the other, each once the one before has answered', async () => {
  await until(async () => tagged('1')(await podsOf('server')) && tagged('1')(await podsOf('host')))
  const first = (await podsOf('host')).map(({ metadata }) => metadata.uid)
  leadAs((await podsOf('server'))[0]?.metadata.name ?? '')
  mostAway = 0
  await applyChart('2')
  await until(async () => tagged('2')(await podsOf('server')))
  // The one that led is gone, and it replaced none: its successor does.
  expect((await podsOf('host')).map(({ metadata }) => metadata.uid)).toEqual(first)
  leadAs((await podsOf('server'))[0]?.metadata.name ?? '')
  const isNew = async (node: string) =>
    (await podsOf('host')).some(
      (pod) => pod.spec.nodeName === node && runs(pod) && imageOf(pod) === 'berth:2',
    )
  falls = 'silent'
  let next = ''
  await until(async () => {
    for (const node of NODE_NAMES) if (await isNew(node)) next = node
    return next !== ''
  })
  for (let rounds = 0; rounds < 25; rounds++) await round()
  expect(await Promise.all(NODE_NAMES.map(isNew))).toEqual(NODE_NAMES.map((node) => node === next))
  falls = 'back'
  silent.clear()
  await until(async () => tagged('2')(await podsOf('host')))
  expect(mostAway).toBe(1)
}, 600_000)
