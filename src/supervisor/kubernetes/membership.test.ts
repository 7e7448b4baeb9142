// Membership by Kubernetes with a real door, a real database and an API server in memory. test/kubernetes/ does the same with
// a real control plane.

import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { createKubeWorld, type KubeWorld, NAMESPACE } from '../../../test/support/kubernetes/world.ts'
import { type FakeApiServer, startFakeApiServer } from '../../../test/support/kubernetes/fake-api-server.ts'
import { loadConfig } from '../../config.ts'
import { createObject, getObject, type KubeObject, pathOf } from '../../kubernetes/api.ts'
import { freePort } from '../../lib/free-port.ts'
import { memberOf } from '../../lib/fleet-identity.ts'
import { SECOND } from '../../lib/clock.ts'
import { hostIdentitiesIn } from '../../processes/channel.ts'
import { listHostsOnNodes } from '../../store/host-nodes.ts'
import { setHostAway, setHostState } from '../../store/hosts.ts'
import { silentLog } from '../../lib/log.ts'
import { joinAtStart } from '../join/join-at-start.ts'
import { kubernetesPart } from './part.ts'
import { DELETION_COST } from './placeholders.ts'
import { type RunningMembership, startMembership } from './membership.ts'

let domain: TestDomain
let fake: FakeApiServer
let world: KubeWorld
let clock: TestClock
let membership: RunningMembership
let dataDir: string

beforeAll(async () => {
  domain = await createTestDomain()
  fake = await startFakeApiServer()
  dataDir = await mkdtemp(join(tmpdir(), 'berth-kube-server-'))
  await writeFile(join(dataDir, 'instance.json'), JSON.stringify({ id: 'main', subnet: '10.8.0.0/16' }))
  clock = createTestClock()
  world = await createKubeWorld(fake.access)
  membership = await startMembership({
    dataDir,
    api: world.api,
    namespace: NAMESPACE,
    door: { host: '127.0.0.1', port: 0 },
    link: { host: '0.0.0.0', port: 7077 },
    anchorImage: 'pause',
    db: domain.app.db,
    clock,
    log: silentLog,
  })
})
afterAll(async () => {
  await membership.stop()
  await world.close()
  await fake.close()
  await rm(dataDir, { recursive: true })
  await domain.close()
})

const hostOn = async (node: string) =>
  (await listHostsOnNodes(domain.app.db)).find(({ nodeName }) => nodeName === node)
const stateOn = async (node: string) => (await hostOn(node))?.state
/** Lets rounds pass until it holds. */
const soon = <T>(look: () => Promise<T>) =>
  expect.poll(async () => {
    clock.advance(SECOND)
    return await look()
  })
/** Lets some rounds pass: by then what was to happen has. */
async function rounds(): Promise<void> {
  const before = fake.requests.length
  await world.makeNode(`round-${before}`)
  for (let round = 0; round < 5; round += 1) {
    clock.advance(SECOND)
    await clock.sleep(20)
  }
  await world.deleteNode(`round-${before}`)
}

describe('a pod', () => {
  it('joins by its token as a host with the name of its node, trusting the server by the authority in a ConfigMap', async () => {
    await world.makeNode('node-1')
    await soon(async () => await world.readAuthority()).toContain('BEGIN CERTIFICATE')
    const pod = await world.startHostPod(membership, {
      node: 'node-1',
      instance: 'aaaa',
      subnet: '10.21.0.0/16',
    })
    expect(await joinAtStart(pod.config, pod.secrets)).toMatchObject({
      name: 'node-1',
      link: { host: '127.0.0.1', port: 7077 },
    })
    const pem = await readFile(hostIdentitiesIn(pod.config.dataDir).engine, 'utf8')
    const certificate = new X509Certificate(pem.slice(pem.indexOf('-----BEGIN CERT')))
    expect(memberOf(certificate)).toEqual({ role: 'engine', host: 'node-1' })
    expect(await hostOn('node-1')).toMatchObject({ name: 'node-1', state: 'joining', nodeUid: pod.nodeUid })
  })

  it('with a node whose name is too long for a host is named by its beginning and a hash', async () => {
    const node = 'ip-10-0-158-123.eu-central-1.compute.internal'
    await world.makeNode(node)
    const pod = await world.startHostPod(membership, { node, instance: 'bbbb', subnet: '10.22.0.0/16' })
    const { name } = await joinAtStart(pod.config, pod.secrets)
    expect(name).toMatch(/^ip-10-0-158-123-eu-cent-[0-9a-f]{8}$/)
  })

  it('starts again without the API server and without the door, with the certificate that it has', async () => {
    await world.makeNode('node-2')
    const pod = await world.startHostPod(membership, {
      node: 'node-2',
      instance: 'cccc',
      subnet: '10.23.0.0/16',
    })
    await joinAtStart(pod.config, pod.secrets)
    const before = await readFile(hostIdentitiesIn(pod.config.dataDir).engine, 'utf8')
    fake.stop()
    expect(await joinAtStart(pod.config, pod.secrets)).toMatchObject({ name: 'node-2' })
    fake.start()
    const elsewhere = { ...pod.config, joinToken: 'kubernetes:127.0.0.1:1' }
    expect(await joinAtStart(elsewhere, pod.secrets)).toMatchObject({ name: 'node-2' })
    expect(await joinAtStart(pod.config, '/nowhere')).toMatchObject({ name: 'node-2' })
    expect(await readFile(hostIdentitiesIn(pod.config.dataDir).engine, 'utf8')).toBe(before)
  })

  it.each([
    [
      'for another audience',
      { audience: 'https://kubernetes.default.svc' },
      'is not for the audience berth-server',
    ],
    ['of another service account', { account: 'default' }, 'not one of the service account'],
    ['of another namespace', { namespace: 'elsewhere' }, 'not one of the service account'],
    ['that is none', { token: 'nothing' }, 'not one of the service account'],
  ])('with a token %s is refused', async (_what, changes, why) => {
    await world.makeNode('node-3')
    const pod = await world.startHostPod(membership, {
      node: 'node-3',
      instance: 'dddd',
      subnet: '10.24.0.0/16',
      ...changes,
    })
    await expect(joinAtStart(pod.config, pod.secrets)).rejects.toThrow(why)
    expect(await hostOn('node-3')).toBe(undefined)
  })

  it('does not send its token to a server that another authority has signed for', async () => {
    const pod = await world.startHostPod(membership, {
      node: 'node-3',
      instance: 'dddd',
      subnet: '10.24.0.0/16',
    })
    await writeFile(join(pod.secrets, 'ca.crt'), await readFile(fake.access.caFile))
    await expect(joinAtStart(pod.config, pod.secrets)).rejects.toThrow('has not joined')
    expect(await hostOn('node-3')).toBe(undefined)
  })
})

describe('a host', () => {
  const node = 'node-1'
  const setAway = async (since: Date | null) => {
    const id = (await hostOn(node))?.id ?? ''
    await setHostAway(domain.app.db, { id, awaySince: since, reason: null, at: new Date() })
  }
  const become = async (state: 'ready' | 'draining') => {
    const id = (await hostOn(node))?.id ?? ''
    await setHostState(domain.app.db, {
      id,
      from: ['joining', 'ready', 'draining', 'lost'],
      to: state,
      at: new Date(),
    })
  }
  beforeEach(async () => {
    await become('ready')
    await setAway(null)
    // What an earlier test has registered again is seen first.
    await soon(async () => (await hostOn(node))?.nodeUid).toBe(await world.uidOf(node))
  })

  it('is drained while its node is cordoned, and takes units again afterwards', async () => {
    await world.cordon(node, true)
    await soon(async () => await stateOn(node)).toBe('draining')
    await world.cordon(node, false)
    await soon(async () => await stateOn(node)).toBe('ready')
  })

  it('that the operator has undrained stays so although its node is cordoned', async () => {
    await world.cordon(node, true)
    await soon(async () => await stateOn(node)).toBe('draining')
    await become('ready')
    await rounds()
    expect(await stateOn(node)).toBe('ready')
    await world.cordon(node, false)
    await soon(async () => (await hostOn(node))?.cordoned).toBe(false)
    expect(await stateOn(node)).toBe('ready')
  })

  it('that is away is not lost because its node is not ready, and is once that is out of service', async () => {
    await setAway(new Date())
    await world.setReady(node, false)
    await rounds()
    expect(await stateOn(node)).toBe('ready')
    await world.taint(node, true)
    await soon(async () => await stateOn(node)).toBe('lost')
    await world.taint(node, false)
  })

  it('that answers is not lost although its node was deleted, and is as soon as it is away', async () => {
    await world.deleteNode(node)
    await rounds()
    expect(await stateOn(node)).toBe('ready')
    await setAway(new Date())
    await soon(async () => await stateOn(node)).toBe('lost')
    await world.makeNode(node)
  })

  it('that answers goes with a node that was registered again, and one that is away does not', async () => {
    await world.deleteNode(node)
    await world.makeNode(node)
    await soon(async () => (await hostOn(node))?.nodeUid).toBe(await world.uidOf(node))
    await setAway(new Date())
    await world.deleteNode(node)
    await world.makeNode(node)
    await soon(async () => await stateOn(node)).toBe('lost')
  })

  it('is neither drained nor lost while the API server is away for ten minutes', async () => {
    await rounds()
    await setAway(new Date())
    fake.stop()
    for (let minute = 0; minute < 10; minute += 1) {
      for (let second = 0; second < 60; second += 1) clock.advance(SECOND)
      await clock.sleep(10)
    }
    expect(await stateOn(node)).toBe('ready')
    fake.start()
    await world.deleteNode(node)
    await soon(async () => await stateOn(node)).toBe('lost')
    await world.makeNode(node)
  })

  it('that was given up joins again when its pod starts, and takes units', async () => {
    await world.deleteNode(node)
    await setAway(new Date())
    await soon(async () => await stateOn(node)).toBe('lost')
    await world.makeNode(node)
    const pod = await world.startHostPod(membership, { node, instance: 'aaaa', subnet: '10.21.0.0/16' })
    await joinAtStart(pod.config, pod.secrets)
    await rounds()
    expect(await hostOn(node)).toMatchObject({ state: 'joining', nodeUid: await world.uidOf(node) })
  })
})

describe('the part of the supervisor', () => {
  const settings = { BERTH_HOSTS_ADDRESS: '0.0.0.0:7077', KUBERNETES_SERVICE_HOST: 'localhost' }

  it('is none without a door, and refuses a door outside of a pod or without an address for hosts', () => {
    const part = (env: Record<string, string>) =>
      kubernetesPart({ config: loadConfig(env), databaseUrl: domain.databaseUrl, log: silentLog })
    expect(part(settings)).toBe(null)
    const door = { BERTH_KUBERNETES_DOOR: '127.0.0.1:7078' }
    expect(() => part(door)).toThrow('is for a server in a pod')
    expect(() => part({ ...door, KUBERNETES_SERVICE_HOST: '10.96.0.1' })).toThrow('needs BERTH_HOSTS_ADDRESS')
  })

  it('opens the door with what Kubernetes puts into the pod, and closes it when it stops', async () => {
    const pod = await mkdtemp(join(tmpdir(), 'berth-kube-pod-'))
    await writeFile(join(pod, 'namespace'), NAMESPACE)
    await writeFile(join(pod, 'ca.crt'), await readFile(fake.access.caFile))
    await writeFile(join(pod, 'token'), await readFile(fake.access.tokenFile))
    const door = { host: '127.0.0.1', port: await freePort('127.0.0.1') }
    const config = loadConfig({
      ...settings,
      BERTH_DATA_DIR: dataDir,
      KUBERNETES_SERVICE_PORT: String(fake.access.port),
      BERTH_KUBERNETES_DOOR: `${door.host}:${door.port}`,
    })
    const part = kubernetesPart({ config, databaseUrl: domain.databaseUrl, log: silentLog }, pod)
    const running = await part?.start(new AbortController().signal)
    await world.makeNode('node-9')
    const host = await world.startHostPod(
      { door },
      { node: 'node-9', instance: 'nine', subnet: '10.39.0.0/16' },
    )
    expect(await joinAtStart(host.config, host.secrets)).toMatchObject({ name: 'node-9' })
    await running?.stop()
    expect(await running?.ended).toBe('ended')
    const again = await world.startHostPod(
      { door },
      { node: 'node-9', instance: 'none', subnet: '10.40.0.0/16' },
    )
    await expect(joinAtStart(again.config, again.secrets)).rejects.toThrow('nothing listens there')
    await rm(pod, { recursive: true })
  })
})

describe('the anchor of a host', () => {
  const node = 'node-1'

  it('is on its node while it has units, is replaced when it ends, and is deleted with the last unit', async () => {
    const host = await hostOn(node)
    await setHostState(domain.app.db, {
      id: host?.id ?? '',
      from: ['joining', 'lost'],
      to: 'ready',
      at: new Date(),
    })
    expect(await world.anchors()).toEqual([])
    const unit = await makeUnit(domain.app, await domain.makeCaller(), { sleep: 'never' })
    await domain.app.db
      .updateTable('units')
      .set({ host_id: host?.id ?? '' })
      .where('id', '=', unit.id)
      .execute()
    await soon(async () => await world.anchors()).toEqual([node])
    const first = await world.anchorOf(node)
    expect(first?.metadata.annotations).toEqual({
      'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
      'karpenter.sh/do-not-disrupt': 'true',
    })
    await world.endAnchor(node)
    await soon(async () => {
      await world.actAsKubelet()
      const next = await world.anchorOf(node)
      return next !== null && next.metadata.uid !== first?.metadata.uid
    }).toBe(true)
    await domain.app.db.deleteFrom('units').where('id', '=', unit.id).execute()
    await soon(async () => {
      await world.actAsKubelet()
      return await world.anchors()
    }).toEqual([])
  })
})

it('a placeholder costs more the more units its host has, so that the emptiest goes first', async () => {
  const pods = pathOf('api', 'v1', 'namespaces', NAMESPACE, 'pods')
  const labels = { 'berth.dev/part': 'placeholder' }
  for (const node of ['node-1', 'node-of-none']) {
    const pod = { metadata: { name: `on-${node}`, labels }, spec: { nodeName: node } }
    await createObject(world.api, pods, { apiVersion: 'v1', kind: 'Pod', ...pod } as KubeObject)
  }
  const unit = await makeUnit(domain.app, await domain.makeCaller(), { sleep: 'never' })
  const id = (await hostOn('node-1'))?.id ?? ''
  await domain.app.db.updateTable('units').set({ host_id: id }).where('id', '=', unit.id).execute()
  const costOn = async (node: string) =>
    (await getObject(world.api, `${pods}/on-${node}`))?.metadata.annotations?.[DELETION_COST]
  await soon(async () => [await costOn('node-1'), await costOn('node-of-none')]).toEqual(['2', '0'])
  await domain.app.db.deleteFrom('units').where('id', '=', unit.id).execute()
  await soon(async () => await costOn('node-1')).toBe('0')
})

describe('the objects of hosts', () => {
  it('say what each host is, and are written only when that has changed', async () => {
    const shown = async () => {
      const { status, spec } = (await world.hostObject('node-1')) ?? {}
      return { node: spec?.['node'], state: status?.['state'], units: status?.['units'] }
    }
    const id = (await hostOn('node-1'))?.id ?? ''
    await setHostAway(domain.app.db, { id, awaySince: null, reason: null, at: new Date() })
    await soon(shown).toEqual({ node: 'node-1', state: 'ready', units: 0 })
    const writes = () => fake.requests.filter((each) => /^(?:PUT|POST) .*\/hosts/.test(each)).length
    const before = writes()
    for (let round = 0; round < 30; round += 1) {
      clock.advance(SECOND)
      await clock.sleep(10)
    }
    expect(writes()).toBe(before)
    await setHostAway(domain.app.db, { id, awaySince: new Date(), reason: null, at: new Date() })
    await soon(shown).toEqual({ node: 'node-1', state: 'away', units: 0 })
  })
})
