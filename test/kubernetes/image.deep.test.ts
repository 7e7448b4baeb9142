// A host in stand-ins of pods, of the image that `npm run image` makes: its pod is killed, the image removed and the next version
// started, while units, their monitors, networks and the pool go on.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Process } from '../../src/contract/process.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { silentLog } from '../../src/lib/log.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { VERSION } from '../../src/lib/version.ts'
import { openApi } from '../../src/kubernetes/api.ts'
import { openDatabase } from '../../src/store/db.ts'
import { postgresSocketDir, runDirOf } from '../../src/supervisor/instance.ts'
import { type RunningMembership, startMembership } from '../../src/supervisor/kubernetes/membership.ts'
import { postgresUrl } from '../../src/supervisor/postgres.ts'
import { type DataDir, eventually, makeDataDir, nameDataDir } from '../support/berth.ts'
import type { Exec } from '../support/berth-units.ts'
import { clearAfterwards } from '../support/clear-afterwards.ts'
import { buildImages, createUnitOn, drainOwnHost, hosts } from '../support/host-lab.ts'
import { cleanHost, hostStateOf, namesOnHost, processesOf } from '../support/host-state.ts'
import { startFakeApiServer } from '../support/kubernetes/fake-api-server.ts'
import {
  buildImage,
  type KubeNode,
  Pod,
  startNode,
  type UnpackedImage,
  unpackImage,
} from '../support/kubernetes/pod.ts'
import { createKubeWorld, type KubeWorld, NAMESPACE } from '../support/kubernetes/world.ts'
import { callAs, type OwnedUnit } from '../support/unit-calls.ts'
import { useBerth } from '../support/use-berth.ts'
import { nameWire } from '../support/wire.ts'

const NODE = 'node-a'
const BUILD_MS = 3_600_000
/** Of the next version. */
const NEXT = VERSION.replace(/\d+$/, (patch) => String(Number(patch) + 1))

const settings = { BERTH_HOSTS_ADDRESS: '' }
beforeAll(async () => {
  settings.BERTH_HOSTS_ADDRESS = `0.0.0.0:${await freePort('0.0.0.0')}`
})
const berth = useBerth(() => settings)
const wire = nameWire(60)
/** A mount of its own, as in a pod, which may not be below /var/tmp. */
const dataDir = nameDataDir().replace('/var/tmp', '/var/lib')
clearAfterwards(dataDir, wire.network)

let data: DataDir
let directory: string
let layout: string
let node: KubeNode
let world: KubeWorld
let membership: RunningMembership
let pod: Pod
let image: UnpackedImage
/** The background process that asks one unit from the other. */
let asking: string
/** One of each class, of one team. */
const units: OwnedUnit[] = []
const closers: (() => unknown)[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-image-test-'))
  layout = await buildImage(join(directory, 'built'))
  data = await makeDataDir(dataDir, { isEmpty: true })
  await buildImages(dataDir, ['debian:12', 'python:3.11'])
  await wire.open()
  node = await startNode(dataDir, wire.network)
  const fake = await startFakeApiServer()
  world = await createKubeWorld(fake.access)
  await world.makeNode(NODE)
  const api = openApi(fake.access)
  const socket = postgresSocketDir(runDirOf(await berth.instance()))
  const db = openDatabase(postgresUrl(socket, 'berth'), silentLog)
  membership = await startMembership({
    dataDir: berth.dataDir,
    api,
    namespace: NAMESPACE,
    door: { host: wire.near, port: 0 },
    link: { host: wire.near, port: Number(settings.BERTH_HOSTS_ADDRESS.split(':')[1]) },
    anchorImage: 'pause',
    db,
    clock: systemClock,
    log: silentLog,
  })
  closers.push(
    async () => await membership.stop(),
    () => api.close(),
    async () => await world.close(),
    async () => await fake.close(),
    async () => await db.destroy(),
  )
}, BUILD_MS)
afterAll(async () => {
  for (const close of closers) await close()
  try {
    // What is left keeps the data directory, by which it is found and cleared.
    await eventually(async () => expect(await stateOfHost()).toEqual(cleanHost), 20_000)
    await data.remove()
  } finally {
    await node?.close()
    await wire.close()
    await rm(directory, { recursive: true })
  }
})

async function startPod(name: string, version: string, isolation: 'runc' | 'gvisor'): Promise<void> {
  image = await unpackImage(layout, join(directory, name), version)
  const { secrets } = await world.startHostPod(membership, {
    node: NODE,
    instance: 'pods',
    subnet: '10.77.0.0/16',
  })
  const { host, port } = membership.door
  const own = {
    BERTH_ISOLATION: isolation,
    // Those made ahead may go with their engine.
    BERTH_READY_MACHINES: '0',
    BERTH_JOIN: `kubernetes:${host}:${port}`,
    BERTH_ENGINE_TLS: `${wire.address}:7075`,
    BERTH_GATEWAY_HANDOVER: `${wire.address}:7079`,
  }
  // One that could not join in time on a busy machine is started again, as by the kubelet.
  pod = await eventually(async () => await Pod.start(node, { name, image, secrets, settings: own }), 300_000)
  await eventually(async () => expect(await list()).toMatch(new RegExp(`^${NODE} +ready`, 'm')))
}

const list = async () => await hosts(berth, settings, 'list')
const call = async <T>({ owner, unit }: OwnedUnit, method: string, path: string, body?: unknown) => {
  const answer = await callAs<T>(owner, method, `/v1/units/${unit.id}${path}`, body)
  expect([200, 201], JSON.stringify(answer.body)).toContain(answer.status)
  return answer.body
}
const says = async (unit: OwnedUnit, ...cmd: string[]) =>
  (await call<Exec>(unit, 'POST', '/exec', { cmd })).stdout
const startedAt = async (unit: OwnedUnit) => (await call<{ startedAt: string }>(unit, 'GET', '')).startedAt

const instance = async () =>
  JSON.parse(await readFile(join(dataDir, 'instance.json'), 'utf8')) as Awaited<
    ReturnType<typeof berth.instance>
  >
const stateOfHost = async () => await hostStateOf(await instance(), dataDir, wire.network)
const namesThere = async () => namesOnHost(await instance(), dataDir)
/** What outlives a pod: the monitors of units, and the sandboxes of those that have one. */
const outliving = async () =>
  (await processesOf(await namesThere())).filter(({ command }) => /\bconmon |^runsc-/.test(command))
/** What of the instance is mounted on its node. */
const mountsThere = async () => {
  const [names, table] = [await namesThere(), await node.inside('cat', '/proc/self/mountinfo')]
  return table.split('\n').filter((line) => names.some((name) => line.includes(name)))
}

/** The same mount, and not another one. Namespaces of networks that were made ahead are each engine's own. */
const poolThere = async () => (await mountsThere()).filter((line) => line.includes(`${dataDir}/pool `))

/** In bash, what `site` answers; its address is in `ip`. */
const ask =
  '(exec 3<>/dev/tcp/$ip/8000 && printf "HEAD / HTTP/1.0\\r\\n\\r\\n" >&3 && head -1 <&3 | cut -d" " -f2)'

/** The answers of `site` to a process in `first`, which asks all the time. */
const answersIn = async (unit: OwnedUnit) =>
  (await says(unit, 'sort', '/root/answers')).split('\n').filter(Boolean)

it(
  'a pod of the image joins as the host of its node, and has units of both classes',
  async () => {
    await startPod('one', VERSION, 'runc')
    await drainOwnHost(berth, settings)
    const command = async (...args: string[]) => await hosts(berth, settings, ...args)
    const first = await createUnitOn({ berth, command, name: NODE }, { name: 'first', sleep: 'never' })
    expect(await pod.stop()).toBe(0)
    await image.remove()
    await startPod('two', VERSION, 'gvisor')
    const spec = { name: 'site', image: 'berth.local/python:3.11', size: 'nano', sleep: 'never' }
    const body = { spec: { ...spec, cmd: ['python3', '-m', 'http.server', '8000'] }, waitTimeoutMs: 300_000 }
    const made = await callAs<RunResult>(first.owner, 'POST', '/v1/units', body)
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    const [unit] = made.body.units
    if (!unit) throw new Error('a create answered no unit')
    expect(unit.host.id).toBe(first.unit.host.id)
    units.push(first, { owner: first.owner, unit })
    for (const each of units) await says(each, 'sh', '-c', 'echo kept >/dev/shm/mark')
    const wait = `until ip=$(getent hosts ${unit.internalHost} | cut -d" " -f1) && ${ask}; do sleep 0.2; done`
    const all = `${wait} >/dev/null 2>&1; while sleep 0.2; do ${ask} || echo failed; done >/root/answers 2>&1`
    asking = (await call<Process>(first, 'POST', '/processes', { cmd: ['bash', '-c', all] })).id
    await eventually(async () => expect((await answersIn(first)).length).toBeGreaterThan(5))
  },
  BUILD_MS,
)

it('what outlives the pod runs from the directory of the node alone', async () => {
  const all = await outliving()
  expect(all.length).toBeGreaterThan(3)
  const files = new Set<string>()
  for (const { pid } of all) {
    const maps = await readFile(`/proc/${pid}/maps`, 'utf8')
    for (const [, file = ''] of maps.matchAll(/ (\/.*)$/gm)) files.add(file)
  }
  // A sandbox maps files of its unit, which it sees in its /root.
  const isOwn = (file: string) =>
    [`${dataDir}/programs/`, '/memfd:', '/root/'].some((one) => file.startsWith(one))
  expect([...files].filter((file) => !isOwn(file))).toEqual([])
  expect([...files].some((file) => file.endsWith('/conmon'))).toBe(true)
  expect([...files].some((file) => file.endsWith('/runsc'))).toBe(true)
})

it(
  'units, monitors, networks and the pool outlive the pod and its image, and the next version adopts them',
  async () => {
    const before = {
      outliving: (await outliving()).map(({ pid }) => pid),
      pool: await poolThere(),
      programs: await readdir(join(dataDir, 'programs')),
      startedAt: await Promise.all(units.map(startedAt)),
    }
    await pod.kill()
    await image.remove()
    await eventually(async () => expect(await list()).not.toMatch(new RegExp(`^${NODE} +ready`, 'm')))
    expect((await outliving()).map(({ pid }) => pid)).toEqual(before.outliving)
    await startPod('three', NEXT, 'gvisor')
    await eventually(async () => expect(await list()).toContain(NEXT))
    const after = {
      outliving: (await outliving()).map(({ pid }) => pid),
      pool: await poolThere(),
      programs: await readdir(join(dataDir, 'programs')),
      startedAt: await Promise.all(units.map(startedAt)),
    }
    expect(after).toEqual(before)
    for (const unit of units) expect(await says(unit, 'cat', '/dev/shm/mark')).toBe('kept\n')
    const [first] = units
    if (!first) throw new Error('there is no unit')
    expect((await call<Process>(first, 'GET', `/processes/${asking}`)).state).toBe('running')
    expect(new Set(await answersIn(first))).toEqual(new Set(['200']))
    const address = `ip=$(getent hosts ${units[1]?.unit.internalHost} | cut -d" " -f1)`
    expect(await says(first, 'bash', '-c', `${address}; ${ask}`)).toBe('200\n')
  },
  BUILD_MS,
)

it(
  'the next pod stops and starts them, and leaves nothing on the node once they are gone',
  async () => {
    for (const unit of units) {
      await call(unit, 'POST', '/stop')
      await call(unit, 'POST', '/start')
      expect(await says(unit, 'echo', 'on')).toBe('on\n')
      await call(unit, 'DELETE', '')
    }
    expect(await pod.stop()).toBe(0)
    await eventually(async () => expect(await mountsThere()).toEqual(await mountsOfNode()))
    expect(await stateOfHost()).toEqual(cleanHost)
  },
  BUILD_MS,
)

/** Its own, and not the engine's. */
const mountsOfNode = async () => (await mountsThere()).filter((line) => line.split(' ')[4] === dataDir)
