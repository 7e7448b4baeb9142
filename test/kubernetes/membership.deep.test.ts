// A server in a cluster with a real control plane: it has the rights of the chart and no others. The pods of hosts are
// stand-ins, since there is no kubelet; they join as pods do, and their engines, in memory, answer with what they got.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, createApp } from '../../src/app.ts'
import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import type { Caller } from '../../src/domain/credentials/caller.ts'
import { destroyUnit } from '../../src/domain/units/destroy.ts'
import { execInUnit } from '../../src/domain/units/exec.ts'
import { recover } from '../../src/domain/units/reconcile.ts'
import { watchHosts } from '../../src/domain/units/watch-hosts.ts'
import { openEpochs } from '../../src/engine/epochs.ts'
import { createFleet } from '../../src/engine/fleet.ts'
import { connectFarEngine } from '../../src/engine/ipc/client.ts'
import { type ServedEngine, serveEngine } from '../../src/engine/ipc/server.ts'
import { type Api, openApi } from '../../src/kubernetes/api.ts'
import { SECOND, systemClock } from '../../src/lib/clock.ts'
import { parseIdentity } from '../../src/lib/fleet-identity.ts'
import { silentLog } from '../../src/lib/log.ts'
import { runLoop } from '../../src/lib/loop.ts'
import { hostIdentitiesIn } from '../../src/processes/channel.ts'
import { listHostsOnNodes } from '../../src/store/host-nodes.ts'
import { joinAtStart } from '../../src/supervisor/join/join-at-start.ts'
import { type RunningMembership, startMembership } from '../../src/supervisor/kubernetes/membership.ts'
import { createTestDomain, makeUnit, type TestDomain } from '../support/domain.ts'
import { createFakeEngine } from '../support/fake-engine/fake-engine.ts'
import { type ControlPlane, startControlPlane } from '../support/kubernetes/control-plane.ts'
import { firstValues, kubectl, renderChart, runTool } from '../support/kubernetes/run.ts'
import { createKubeWorld, type HostPod, type KubeWorld, NAMESPACE } from '../support/kubernetes/world.ts'

const PATIENT = { timeout: 90_000, interval: 100 }
const stop = new AbortController()
let plane: ControlPlane
let world: KubeWorld
let api: Api
let domain: TestDomain
let app: App
let membership: RunningMembership
let directory: string
let loop: Promise<void>
const engines = new Map<string, ServedEngine>()

beforeAll(async () => {
  plane = await startControlPlane({ flags: ['--min-request-timeout=5'] })
  await kubectl(plane.kubeconfig, ['create', 'namespace', NAMESPACE])
  await kubectl(
    plane.kubeconfig,
    ['apply', '-n', NAMESPACE, '-f', '-'],
    (await renderChart(firstValues)).stdout,
  )
  world = await createKubeWorld(plane.access)
  directory = await mkdtemp(join(tmpdir(), 'berth-kube-deep-'))
  await writeFile(join(directory, 'instance.json'), JSON.stringify({ id: 'main', subnet: '10.8.0.0/16' }))
  api = openApi({ ...plane.access, tokenFile: await serverToken() })
  domain = await createTestDomain()
  membership = await startMembership({
    dataDir: directory,
    api,
    namespace: NAMESPACE,
    door: { host: '127.0.0.1', port: 0 },
    link: { host: '127.0.0.1', port: 7077 },
    anchorImage: 'pause',
    db: domain.app.db,
    clock: systemClock,
    log: silentLog,
  })
  const server = parseIdentity(await issueIdentity(directory, { role: 'server', host: 'main' }, new Date()))
  const fleet = createFleet(domain.app.fleet.local(), ({ name, address }) => {
    const [host = '', port] = address.split(':')
    const at = { host, port: Number(port), name, identity: server }
    return connectFarEngine({ address: at, epoch: 1, onLost: () => {} })
  })
  app = createApp({ ...domain.app, clock: domain.clock, fleet })
  await recover(app)
  const run = async () => await watchHosts(app)
  const watching = { name: 'watch hosts', everyMs: SECOND / 2, timeoutMs: 60 * SECOND, run }
  loop = runLoop(watching, { clock: systemClock, log: silentLog, signal: stop.signal })
}, 3_600_000)
afterAll(async () => {
  stop.abort()
  await loop
  await membership?.stop()
  for (const engine of engines.values()) await engine.close()
  api?.close()
  await world?.close()
  await domain?.close()
  await plane?.close()
  await rm(directory, { recursive: true })
}, 120_000)

/** As the kubelet gives it to the server's pod. */
async function serverToken(): Promise<string> {
  const token = await kubectl(plane.kubeconfig, ['create', 'token', 'berth-server', '-n', NAMESPACE])
  const file = join(directory, 'server-token')
  await writeFile(file, token)
  return file
}

async function makeNode(node: string): Promise<void> {
  await world.makeNode(node)
  await kubectl(plane.kubeconfig, ['label', 'node', node, 'berth.dev/host=true'])
  await world.setReady(node, true)
}

const hostOn = async (node: string) =>
  (await listHostsOnNodes(domain.app.db)).find(({ nodeName }) => nodeName === node)
const stateOn = async (node: string) => (await hostOn(node))?.state
const stateSoon = (node: string) => expect.poll(async () => await stateOn(node), PATIENT)

/** Its engine listens with the certificate that it got. */
async function startEngine(
  name: string,
  { config }: HostPod,
  subnet: number,
  instance: string,
): Promise<void> {
  const identity = parseIdentity(await readFile(hostIdentitiesIn(config.dataDir).engine, 'utf8'))
  const tls = { host: '127.0.0.1', port: config.engineTls?.port ?? 0, identity }
  const served = await serveEngine({
    engine: createFakeEngine({ clock: domain.clock, subnet, instance }),
    epochs: await openEpochs(join(directory, `${name}.epoch`)),
    socketPath: join(directory, `${name}.sock`),
    socketGid: 0,
    tls,
    log: silentLog,
  })
  engines.set(name, served)
}

async function joinOn(node: string, instance: string, subnet: number): Promise<void> {
  const pod = await world.startHostPod(membership, { node, instance, subnet: `10.${subnet}.0.0/16` })
  expect(await joinAtStart(pod.config, pod.secrets)).toMatchObject({ name: node })
  await startEngine(node, pod, subnet, instance)
  // A stand-in: what drain finds there is to be the DaemonSet's.
  await kubectl(plane.kubeconfig, ['delete', 'pod', `host-${instance}`, '-n', NAMESPACE, '--force'])
  await stateSoon(node).toBe('ready')
}

async function unitOn(node: string): Promise<{ caller: Caller; id: string }> {
  const host = await hostOn(node)
  for (;;) {
    const caller = await domain.makeCaller()
    // Until the next round looks: the others are passed over.
    for (const each of app.fleet.hosts()) each.isDraining = each.id !== host?.id
    const unit = await makeUnit(app, caller, { sleep: 'never' })
    if (unit.host.id === host?.id) return { caller, id: unit.id }
  }
}

const drain = async (node: string, timeout: string) =>
  await runTool('kubectl', ['drain', node, '--ignore-daemonsets', `--timeout=${timeout}`], {
    kubeconfig: plane.kubeconfig,
  })

describe('a cluster with the chart', () => {
  it('has a pod of the DaemonSet on each node that was chosen, with the priority that its quota admits', async () => {
    await makeNode('node-a')
    await makeNode('node-b')
    const args = ['get', 'pods', '-n', NAMESPACE, '-l', 'berth.dev/part=host', '-o', 'json']
    const pods = async () => {
      const { items } = JSON.parse(await kubectl(plane.kubeconfig, args)) as {
        items: { spec: { priorityClassName: string; hostNetwork: boolean } }[]
      }
      return items.map(({ spec }) => [spec.priorityClassName, spec.hostNetwork])
    }
    const wanted = ['system-node-critical', true]
    await expect.poll(pods, PATIENT).toEqual([wanted, wanted])
  })

  it('gives its server the rights that it uses, and not those to read secrets or to change nodes', async () => {
    const user = `--as=system:serviceaccount:${NAMESPACE}:berth-server`
    const may = async (...asked: string[]) =>
      (
        await runTool('kubectl', ['auth', 'can-i', ...asked, user], { kubeconfig: plane.kubeconfig })
      ).stdout.trim()
    expect(await may('watch', 'nodes')).toBe('yes')
    expect(await may('create', 'pods', '-n', NAMESPACE)).toBe('yes')
    for (const asked of [
      ['update', 'nodes'],
      ['get', 'secrets', '-n', NAMESPACE],
      ['create', 'pods', '-n', 'default'],
      ['create', 'pods', '--subresource=exec', '-n', NAMESPACE],
    ])
      expect([asked, await may(...asked)]).toEqual([asked, 'no'])
  })
})

describe('the pod of a host', () => {
  it('is refused with a token for the API server itself, and with one of another service account', async () => {
    await expect.poll(async () => await world.readAuthority(), PATIENT).toContain('BEGIN CERTIFICATE')
    const pod = { node: 'node-a', instance: 'xxxx', subnet: '10.29.0.0/16' }
    const own = await world.startHostPod(membership, { ...pod, audience: 'https://kubernetes.default.svc' })
    await expect(joinAtStart(own.config, own.secrets)).rejects.toThrow('not for the audience berth-server')
    const other = await world.startHostPod(membership, { ...pod, account: 'default' })
    await expect(joinAtStart(other.config, other.secrets)).rejects.toThrow('not one of the service account')
    await kubectl(plane.kubeconfig, ['delete', 'pod', 'host-xxxx', '-n', NAMESPACE, '--force'])
    expect(await hostOn('node-a')).toBe(undefined)
  })

  it('joins by its projected token as a host with the name of its node, which kubectl shows', async () => {
    await joinOn('node-a', 'aaaa', 21)
    await joinOn('node-b', 'bbbb', 22)
    const columns = async () => await kubectl(plane.kubeconfig, ['get', 'hosts.berth.dev', '-n', NAMESPACE])
    await expect.poll(columns, PATIENT).toMatch(/node-a +node-a +ready[^\n]*\nnode-b +node-b +ready/)
  })
})

describe('a host in the cluster', () => {
  it('follows kubectl cordon and uncordon', async () => {
    await kubectl(plane.kubeconfig, ['cordon', 'node-a'])
    await stateSoon('node-a').toBe('draining')
    await kubectl(plane.kubeconfig, ['uncordon', 'node-a'])
    await stateSoon('node-a').toBe('ready')
  })

  it('without units lets kubectl drain end within ten seconds', async () => {
    const { exitCode, stderr } = await drain('node-b', '10s')
    expect([exitCode, stderr]).toEqual([0, expect.any(String)])
    await kubectl(plane.kubeconfig, ['uncordon', 'node-b'])
    await stateSoon('node-b').toBe('ready')
  })

  it('with units lets kubectl drain wait, while they go on, until the last one is gone', async () => {
    const { caller, id } = await unitOn('node-a')
    const runs = async () =>
      (await execInUnit(app, caller, id, { cmd: ['echo', 'on'], timeoutMs: 5000 })).stdout
    await expect.poll(async () => await world.anchors(), PATIENT).toContain('node-a')
    await world.actAsKubelet()
    const refused = await drain('node-a', '4s')
    expect(refused.exitCode).toBe(1)
    expect(refused.stderr).toContain("would violate the pod's disruption budget")
    expect(await stateOn('node-a')).toBe('draining')
    expect(await runs()).toBe('on\n')
    const draining = drain('node-a', '120s')
    await destroyUnit(app, caller, id)
    const goneMs = systemClock.monotonicMs()
    const ended = async () => {
      await world.actAsKubelet()
      return (await world.anchors()).length
    }
    await expect.poll(ended, PATIENT).toBe(0)
    expect((await draining).exitCode).toBe(0)
    process.stdout.write(
      `drain ended ${Math.round(systemClock.monotonicMs() - goneMs)} ms after the last unit\n`,
    )
    await kubectl(plane.kubeconfig, ['uncordon', 'node-a'])
    await stateSoon('node-a').toBe('ready')
  })

  it('serves all calls while the API server is away, and follows its node again afterwards', async () => {
    const { caller, id } = await unitOn('node-a')
    await plane.stopApi()
    const other = await makeUnit(app, caller, { sleep: 'never' })
    for (const unit of [id, other.id])
      expect((await execInUnit(app, caller, unit, { cmd: ['echo', 'on'], timeoutMs: 5000 })).stdout).toBe(
        'on\n',
      )
    expect([await stateOn('node-a'), await stateOn('node-b')]).toEqual(['ready', 'ready'])
    await plane.startApi()
    await kubectl(plane.kubeconfig, ['cordon', 'node-a'])
    await stateSoon('node-a').toBe('draining')
    await kubectl(plane.kubeconfig, ['uncordon', 'node-a'])
    await stateSoon('node-a').toBe('ready')
    for (const unit of [id, other.id]) await destroyUnit(app, caller, unit)
  })

  /** Its engine answers no more. */
  async function cutOff(node: string): Promise<void> {
    await engines.get(node)?.close()
    engines.delete(node)
    const isAway = async () => (await hostOn(node))?.awaySince instanceof Date
    await expect.poll(isAway, PATIENT).toBe(true)
  }

  it('that is away is lost once its node has the taint out-of-service, and its anchor goes', async () => {
    await unitOn('node-a')
    await expect.poll(async () => await world.anchors(), PATIENT).toContain('node-a')
    await cutOff('node-a')
    await world.setReady('node-a', false)
    expect(await stateOn('node-a')).toBe('ready')
    const taint = 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute'
    await kubectl(plane.kubeconfig, ['taint', 'node', 'node-a', taint])
    await stateSoon('node-a').toBe('lost')
    const anchored = async () => {
      await world.actAsKubelet()
      return await world.anchors()
    }
    await expect.poll(anchored, PATIENT).toEqual([])
  })

  it('that is away is lost once its node is deleted', async () => {
    await cutOff('node-b')
    await kubectl(plane.kubeconfig, ['delete', 'node', 'node-b'])
    await stateSoon('node-b').toBe('lost')
    const columns = async () => await kubectl(plane.kubeconfig, ['get', 'hosts.berth.dev', '-n', NAMESPACE])
    await expect.poll(columns, PATIENT).toMatch(/node-b +node-b +lost/)
  })
})
