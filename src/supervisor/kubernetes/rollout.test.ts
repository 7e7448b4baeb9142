// Rolling the pods of hosts, with an API server in memory; the test acts as the DaemonSet's controller and the kubelet.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { hostOnNode } from '../../../test/support/kubernetes/host-on-node.ts'
import { type FakeApiServer, startFakeApiServer } from '../../../test/support/kubernetes/fake-api-server.ts'
import {
  type Api,
  changeObject,
  createObject,
  deleteObject,
  getObject,
  type KubeObject,
  openApi,
} from '../../kubernetes/api.ts'
import { SECOND, systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import type { HostOnNode } from '../../store/host-nodes.ts'
import { type Rollout, startRollout } from './rollout.ts'

const pods = '/api/v1/namespaces/berth/pods'
const revisions = '/apis/apps/v1/namespaces/berth/controllerrevisions'
const [OLD, NEW] = ['registry/berth:1', 'registry/berth:2']

let fake: FakeApiServer
let api: Api
let clock: TestClock
let stop: AbortController
let rollout: Rollout
const hosts = new Map<string, HostOnNode>()

beforeEach(async () => {
  fake = await startFakeApiServer()
  api = openApi(fake.access)
  clock = createTestClock()
  stop = new AbortController()
  rollout = startRollout(
    { api, namespace: 'berth', ownPod: 'server-1' },
    { clock, log: silentLog, signal: stop.signal },
  )
  await startPod('server-1', { part: 'server', image: NEW })
  await addRevision(1, OLD)
  for (const node of ['node-a', 'node-b']) {
    hosts.set(node, hostOn(node))
    await startPod(`${node}-1`, { part: 'host', image: OLD, revision: 1, node })
  }
})
afterEach(async () => {
  stop.abort()
  await rollout.stopped
  api.close()
  await fake.close()
})

const hostOn = (node: string) => hostOnNode(node, { stateSince: clock.now(), seenAt: clock.now() })

type Started = { part: 'server' | 'host'; image: string; revision?: number; node?: string; isReady?: boolean }

async function startPod(name: string, { part, image, revision = 0, node = '', isReady = true }: Started) {
  const labels = { 'berth.dev/part': part, 'controller-revision-hash': `hash-${revision}` }
  await createObject(api, pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec: { nodeName: node, containers: [{ name: part, image }] },
  } as KubeObject)
  if (isReady) await setReady(name)
}

const setReady = async (name: string) =>
  await changeObject(api, {
    path: `${pods}/${name}/status`,
    change: (pod) => ({ ...pod, status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
    clock: systemClock,
  })

async function addRevision(revision: number, image: string): Promise<void> {
  await createObject(api, revisions, {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: `berth-host-${revision}`,
      labels: { 'berth.dev/part': 'host', 'controller-revision-hash': `hash-${revision}` },
    },
    revision,
    data: { spec: { template: { spec: { containers: [{ name: 'host', image }] } } } },
  } as KubeObject)
}

/** Some rounds, in which all hosts answer but those that are not to. */
async function rounds(silent: string[] = []): Promise<void> {
  for (let round = 0; round < 8; round += 1) {
    clock.advance(SECOND)
    for (const [node, host] of hosts)
      if (!silent.includes(node)) hosts.set(node, { ...host, seenAt: clock.now() })
    await rollout.roll([...hosts.values()])
    await systemClock.sleep(20)
  }
}

const isThere = async (name: string) => {
  const pod = await getObject(api, `${pods}/${name}`)
  return pod !== null && pod.metadata.deletionTimestamp === undefined
}
/** The kubelet has ended it, and the DaemonSet starts the next one. */
async function replace(node: string, isReady = true): Promise<void> {
  await deleteObject(api, `${pods}/${node}-1`, { graceS: 0 })
  await startPod(`${node}-2`, { part: 'host', image: NEW, revision: 2, node, isReady })
}

describe('pods of hosts', () => {
  it('are replaced one at a time, each after the host of the one before has answered again', async () => {
    await addRevision(2, NEW)
    await rounds()
    expect([await isThere('node-a-1'), await isThere('node-b-1')]).toEqual([false, true])
    await replace('node-a', false)
    await rounds()
    expect(await isThere('node-b-1')).toBe(true)
    await setReady('node-a-2')
    await rounds(['node-a'])
    expect(await isThere('node-b-1')).toBe(true)
    await rounds()
    expect(await isThere('node-b-1')).toBe(false)
    await replace('node-b')
    await rounds()
    expect([await isThere('node-a-2'), await isThere('node-b-2')]).toEqual([true, true])
  })

  it('are left alone until all servers are new', async () => {
    await startPod('server-0', { part: 'server', image: OLD })
    await addRevision(2, NEW)
    await rounds()
    expect([await isThere('node-a-1'), await isThere('node-b-1')]).toEqual([true, true])
    await deleteObject(api, `${pods}/server-0`, { graceS: 0 })
    await rounds()
    expect(await isThere('node-a-1')).toBe(false)
  })

  it('are left alone by a server that is older than they are to be', async () => {
    await addRevision(2, 'registry/berth:3')
    await rounds()
    expect([await isThere('node-a-1'), await isThere('node-b-1')]).toEqual([true, true])
  })

  it('are left alone while a host is away, but one that does not run is replaced', async () => {
    await addRevision(2, NEW)
    hosts.set('node-b', { ...hostOn('node-b'), awaySince: clock.now() })
    await rounds()
    expect([await isThere('node-a-1'), await isThere('node-b-1')]).toEqual([true, true])
    await changeObject(api, {
      path: `${pods}/node-b-1/status`,
      change: (pod) => ({ ...pod, status: { conditions: [{ type: 'Ready', status: 'False' }] } }),
      clock: systemClock,
    })
    await rounds()
    expect([await isThere('node-a-1'), await isThere('node-b-1')]).toEqual([true, false])
  })

  it('are not replaced for a template that they have', async () => {
    await rounds()
    expect([await isThere('node-a-1'), await isThere('node-b-1')]).toEqual([true, true])
  })
})
