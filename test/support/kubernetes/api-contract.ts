// What Berth relies on in an API server of Kubernetes, as tests: the fast tier runs them against the fake one, the deep tier
// against a real one, so that the fake cannot become something else.

import { randomBytes } from 'node:crypto'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import {
  type Api,
  type ApiAccess,
  changeObject,
  createObject,
  deleteObject,
  getObject,
  type KubeObject,
  openApi,
  pathOf,
} from '../../../src/kubernetes/api.ts'
import { followObjects } from '../../../src/kubernetes/follow.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { createLineSplitter } from '../../../src/lib/line-splitter.ts'
import type { FakeObject } from './fake-api-server.ts'

export type Cluster = {
  /** Of an account that may do everything. */
  access: ApiAccess
  /** Makes what a watch could begin with from version 1 on too old. */
  compact(): Promise<void>
  close(): Promise<void>
}

type Config = KubeObject & { data: Record<string, string> }
type WatchEvent = { type: string; object: FakeObject }

const PATIENT = { timeout: 60_000, interval: 50 }

export function describeApi(what: string, start: () => Promise<Cluster>): void {
  describe(what, () => {
    let cluster: Cluster
    let api: Api
    const namespace = `berth-${randomBytes(4).toString('hex')}`
    const configs = pathOf('api', 'v1', 'namespaces', namespace, 'configmaps')
    const pods = pathOf('api', 'v1', 'namespaces', namespace, 'pods')
    const accounts = pathOf('api', 'v1', 'namespaces', namespace, 'serviceaccounts')
    const node = `node-${namespace}`

    beforeAll(async () => {
      cluster = await start()
      api = openApi(cluster.access)
      await createObject(api, '/api/v1/namespaces', object('v1', 'Namespace', namespace))
      await createObject(api, accounts, object('v1', 'ServiceAccount', 'host'))
      await createObject(api, '/api/v1/nodes', object('v1', 'Node', node))
    }, 3_600_000)
    afterAll(async () => {
      if (!cluster) return
      await deleteObject(api, `/api/v1/nodes/${node}`, {})
      api.close()
      await cluster.close()
    }, 60_000)

    const makeConfig = async (name: string, labels: Record<string, string> = {}, data = {}) =>
      await createObject(api, configs, { ...object('v1', 'ConfigMap', name, labels), data } as Config)
    const makePod = async (name: string, labels: Record<string, string> = {}) =>
      await createObject(api, pods, {
        ...object('v1', 'Pod', name, labels),
        spec: {
          nodeName: node,
          serviceAccountName: 'host',
          automountServiceAccountToken: false,
          containers: [{ name: 'only', image: 'none' }],
        },
      } as KubeObject)
    const end = async (name: string) => await deleteObject(api, `${pods}/${name}`, { graceS: 0 })

    it('an object is made once, read, and deleted; what is not there is no error', async () => {
      expect(await getObject(api, `${configs}/one`)).toBe(null)
      expect([await makeConfig('one'), await makeConfig('one')]).toEqual([true, false])
      const found = await getObject<Config>(api, `${configs}/one`)
      expect(found?.metadata).toMatchObject({ name: 'one', namespace, uid: expect.any(String) })
      await deleteObject(api, `${configs}/one`, {})
      await deleteObject(api, `${configs}/one`, {})
      expect(await getObject(api, `${configs}/one`)).toBe(null)
    })

    it('an object without a name is refused by its reason, and a token that is none too', async () => {
      const nameless = {
        method: 'POST',
        path: configs,
        body: { kind: 'ConfigMap', apiVersion: 'v1', metadata: {} },
      }
      await expect(api.call({ ...nameless, method: 'POST' })).rejects.toMatchObject({
        status: 422,
        reason: 'Invalid',
      })
      const directory = await mkdtemp(join(tmpdir(), 'berth-api-token-'))
      onTestFinished(async () => await rm(directory, { recursive: true }))
      const tokenFile = join(directory, 'token')
      await writeFile(tokenFile, 'another')
      const stranger = openApi({ ...cluster.access, tokenFile })
      onTestFinished(() => stranger.close())
      const call = async () => await stranger.call({ method: 'GET', path: configs })
      await expect(call()).rejects.toMatchObject({ status: 401, reason: 'Unauthorized' })
      // As the kubelet renews it.
      await copyFile(cluster.access.tokenFile, tokenFile)
      expect(await call()).toMatchObject({ metadata: expect.anything() })
    })

    it('a write of an older version is refused, and changes that are made at once all count', async () => {
      await makeConfig('count', {}, { value: '0' })
      const path = `${configs}/count`
      const before = await getObject<Config>(api, path)
      const add = (config: Config) => ({
        ...config,
        data: { value: String(Number(config.data['value']) + 1) },
      })
      await Promise.all(
        Array.from({ length: 4 }, () => changeObject(api, { path, change: add, clock: systemClock })),
      )
      expect((await getObject<Config>(api, path))?.data).toEqual({ value: '4' })
      await expect(api.call({ method: 'PUT', path, body: before })).rejects.toMatchObject({
        status: 409,
        reason: 'Conflict',
      })
    })

    it('a deletion of one object leaves another of its name that came after it', async () => {
      await makeConfig('again')
      const path = `${configs}/again`
      const first = await getObject(api, path)
      await deleteObject(api, path, { uid: first?.metadata.uid })
      await makeConfig('again')
      await deleteObject(api, path, { uid: first?.metadata.uid })
      expect((await getObject(api, path))?.metadata.uid).not.toBe(first?.metadata.uid)
    })

    it('the status of a node is written apart from the rest', async () => {
      const path = `/api/v1/nodes/${node}`
      const capacity = { cpu: '4' }
      const setStatus = (each: FakeObject) => ({ ...each, status: { ...each.status, capacity } })
      await changeObject<FakeObject>(api, { path: `${path}/status`, change: setStatus, clock: systemClock })
      const cordon = (each: FakeObject) => ({
        ...each,
        spec: { ...each.spec, unschedulable: true },
        status: {},
      })
      const cordoned = await changeObject<FakeObject>(api, { path, change: cordon, clock: systemClock })
      expect(cordoned).toMatchObject({ spec: { unschedulable: true }, status: { capacity } })
    })

    it('a list comes in pages of the size that is asked for', async () => {
      for (const name of ['page-a', 'page-b', 'page-c']) await makeConfig(name, { in: 'pages' })
      const names: string[] = []
      let next: string | undefined = ''
      let pages = 0
      while (next !== undefined) {
        const query = { labelSelector: 'in=pages', limit: '2', ...(next === '' ? {} : { continue: next }) }
        const page = (await api.call({ method: 'GET', path: configs, query })) as {
          metadata: { continue?: string }
          items: Config[]
        }
        names.push(...page.items.map(({ metadata }) => metadata.name))
        next = page.metadata.continue || undefined
        pages += 1
      }
      expect([names, pages]).toEqual([['page-a', 'page-b', 'page-c'], 2])
    })

    /** Of a watch of that many seconds, until it was closed. */
    async function watched(
      query: Record<string, string>,
      meanwhile: () => Promise<void>,
    ): Promise<WatchEvent[]> {
      const response = await api.open({
        method: 'GET',
        path: configs,
        query: { watch: 'true', allowWatchBookmarks: 'true', ...query },
      })
      const acting = meanwhile()
      const lines = createLineSplitter(1_000_000, () => {})
      const told: WatchEvent[] = []
      for await (const part of response as AsyncIterable<Buffer>)
        for (const line of lines.add(part)) told.push(JSON.parse(line) as WatchEvent)
      await acting
      return told
    }

    it('a watch tells of each change in its order, then its version, and is closed after its time', async () => {
      const { metadata } = (await api.call({ method: 'GET', path: configs })) as KubeObject
      const version = metadata.resourceVersion ?? ''
      const query = { resourceVersion: version, labelSelector: 'in=watch', timeoutSeconds: '4' }
      const told = await watched(query, async () => {
        await makeConfig('watched', { in: 'watch' }, { value: '1' })
        await makeConfig('ignored')
        const change = (config: Config) => ({ ...config, data: { value: '2' } })
        await changeObject<Config>(api, { path: `${configs}/watched`, change, clock: systemClock })
        await deleteObject(api, `${configs}/watched`, {})
      })
      const types = told.map(({ type }) => type)
      expect(types.filter((type) => type !== 'BOOKMARK')).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
      expect(types).toContain('BOOKMARK')
      expect(Number(told.at(-1)?.object.metadata.resourceVersion)).toBeGreaterThan(Number(version))
    })

    it('a watch from before what is remembered is refused as expired', async () => {
      await cluster.compact()
      const told = await watched({ resourceVersion: '1', timeoutSeconds: '3' }, async () => {})
      expect(told).toMatchObject([{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }])
    })

    it('a list is followed over watches that are closed all the time, and nothing is missed', async () => {
      const stop = new AbortController()
      const seen = new Set<string>()
      let lists = 0
      const counting: Api = {
        ...api,
        call: async (call) => {
          lists += 1
          return await api.call(call)
        },
      }
      const followed = followObjects<Config>(
        counting,
        {
          path: configs,
          query: { labelSelector: 'in=followed' },
          watchS: 1,
          changed: (objects) => {
            for (const [key, { data }] of objects) seen.add(`${key} ${data?.['value']}`)
          },
        },
        { clock: systemClock, log: silentLog, signal: stop.signal },
      )
      onTestFinished(async () => {
        stop.abort()
        await followed.stopped
      })
      for (let value = 0; lists < 4 || value < 20; value += 1) {
        const name = `followed-${value}`
        await makeConfig(name, { in: 'followed' }, { value: String(value) })
        await expect.poll(() => seen.has(`${namespace}/${name} ${value}`), PATIENT).toBe(true)
        await deleteObject(api, `${configs}/${name}`, {})
        await expect.poll(() => followed.objects()?.has(`${namespace}/${name}`), PATIENT).toBe(false)
        if (value >= 20) await systemClock.sleep(200)
      }
    })

    it('a pod of a node stays, marked as deleted, until its kubelet has ended it', async () => {
      await makePod('ending')
      await deleteObject(api, `${pods}/ending`, {})
      expect((await getObject(api, `${pods}/ending`))?.metadata.deletionTimestamp).toEqual(expect.any(String))
      await end('ending')
      expect(await getObject(api, `${pods}/ending`)).toBe(null)
    })

    it('an eviction is refused by a budget that lets no pod go, and done without one', async () => {
      const budgets = pathOf('apis', 'policy', 'v1', 'namespaces', namespace, 'poddisruptionbudgets')
      await makePod('held', { held: 'yes' })
      const running = (each: FakeObject) => ({
        ...each,
        status: {
          ...each.status,
          phase: 'Running',
          conditions: [{ type: 'Ready', status: 'True' }],
        },
      })
      await changeObject<FakeObject>(api, {
        path: `${pods}/held/status`,
        change: running,
        clock: systemClock,
      })
      await createObject(api, budgets, {
        ...object('policy/v1', 'PodDisruptionBudget', 'held'),
        spec: { minAvailable: 1_000_000, selector: { matchLabels: { held: 'yes' } } },
      } as KubeObject)
      const body = object('policy/v1', 'Eviction', 'held')
      const evict = async () =>
        await api.call({ method: 'POST', path: `${pods}/held/eviction`, body }).then(
          () => 'let go',
          (error: { status?: number }) => error.status,
        )
      expect(await evict()).toBe(429)
      expect((await getObject(api, `${pods}/held`))?.metadata.deletionTimestamp).toBe(undefined)
      await deleteObject(api, `${budgets}/held`, {})
      await expect.poll(evict, PATIENT).toBe('let go')
      expect((await getObject(api, `${pods}/held`))?.metadata.deletionTimestamp).toEqual(expect.any(String))
      await end('held')
    })

    it('a review of a token names its pod and its node, and one for another audience is refused', async () => {
      await makePod('reviewed')
      const pod = await getObject(api, `${pods}/reviewed`)
      const asked = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          audiences: ['berth-server'],
          expirationSeconds: 600,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'reviewed', uid: pod?.metadata.uid },
        },
      }
      const issued = (await api.call({ method: 'POST', path: `${accounts}/host/token`, body: asked })) as {
        status: { token: string }
      }
      const review = async (audience: string) =>
        await api.call({
          method: 'POST',
          path: '/apis/authentication.k8s.io/v1/tokenreviews',
          body: {
            apiVersion: 'authentication.k8s.io/v1',
            kind: 'TokenReview',
            spec: { token: issued.status.token, audiences: [audience] },
          },
        })
      const found = await getObject(api, `/api/v1/nodes/${node}`)
      expect(await review('berth-server')).toMatchObject({
        status: {
          authenticated: true,
          audiences: ['berth-server'],
          user: {
            username: `system:serviceaccount:${namespace}:host`,
            extra: {
              'authentication.kubernetes.io/pod-name': ['reviewed'],
              'authentication.kubernetes.io/node-name': [node],
              'authentication.kubernetes.io/node-uid': [found?.metadata.uid],
            },
          },
        },
      })
      const other = (await review('https://kubernetes.default.svc')) as {
        status: { authenticated?: boolean }
      }
      expect(other.status.authenticated ?? false).toBe(false)
      await end('reviewed')
    })
  })
}

function object(
  apiVersion: string,
  kind: string,
  name: string,
  labels: Record<string, string> = {},
): FakeObject {
  return { apiVersion, kind, metadata: { name, labels } }
}
