// What else is in a cluster, for tests of hosts in it: nodes, the pods that a DaemonSet would start on them, and a kubelet's
// part in their ends. The API server is a real one or the fake one.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, loadConfig } from '../../../src/config.ts'
import {
  type ApiAccess,
  changeObject,
  createObject,
  deleteObject,
  getObject,
  type KubeObject,
  openApi,
  pathOf,
} from '../../../src/kubernetes/api.ts'
import { type Node, NODES } from '../../../src/kubernetes/node.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { freePort } from '../../../src/lib/free-port.ts'
import type { Address } from '../../../src/lib/setting-values.ts'
import type { FakeObject } from './fake-api-server.ts'

export const NAMESPACE = 'berth'

export type HostPod = {
  config: Config
  /** Where its projected volume is. */
  secrets: string
  nodeUid: string
}

export type KubeWorld = Awaited<ReturnType<typeof createKubeWorld>>

type Started = {
  node: string
  instance: string
  subnet: string
  audience?: string
  account?: string
  namespace?: string
  token?: string
}

/** Makes the namespace and its service accounts. */
export async function createKubeWorld(access: ApiAccess) {
  const api = openApi(access)
  const clock = systemClock
  const directory = await mkdtemp(join(tmpdir(), 'berth-kube-world-'))
  const inNamespace = (kind: string, namespace = NAMESPACE) =>
    pathOf('api', 'v1', 'namespaces', namespace, kind)
  const anchorsPath = inNamespace('pods')
  const hostObjects = pathOf('apis', 'berth.dev', 'v1alpha1', 'namespaces', NAMESPACE, 'hosts')
  const made = (kind: string, name: string): FakeObject => ({ apiVersion: 'v1', kind, metadata: { name } })
  for (const namespace of [NAMESPACE, 'elsewhere']) {
    await createObject(api, '/api/v1/namespaces', made('Namespace', namespace))
    for (const account of ['berth-host', 'default'])
      await createObject(api, inNamespace('serviceaccounts', namespace), made('ServiceAccount', account))
  }

  const nodePath = (name: string) => NODES + pathOf(name)
  const changeNode = async (name: string, change: (node: Node) => Node) =>
    await changeObject<Node>(api, { path: nodePath(name), change, clock })
  const setNodeStatus = async (name: string, status: Record<string, unknown>) =>
    void (await changeObject<FakeObject>(api, {
      path: `${nodePath(name)}/status`,
      change: (node) => ({ ...node, status: { ...node.status, ...status } }),
      clock,
    }))
  const listAnchors = async (): Promise<FakeObject[]> => {
    const query = { labelSelector: 'berth.dev/anchor=true' }
    const { items } = (await api.call({ method: 'GET', path: anchorsPath, query })) as { items: FakeObject[] }
    return items
  }
  const anchorOf = async (node: string) =>
    (await listAnchors()).find(
      ({ spec, metadata }) => spec?.['nodeName'] === node && !metadata.deletionTimestamp,
    ) ?? null
  const setPodStatus = async (name: string, status: Record<string, unknown>) =>
    await changeObject<FakeObject>(api, {
      path: `${anchorsPath}/${name}/status`,
      change: (pod) => ({ ...pod, status: { ...pod.status, ...status } }),
      clock,
    })

  const readAuthority = async () => {
    const path = `${inNamespace('configmaps')}/berth-fleet`
    const map = await getObject<KubeObject & { data?: Record<string, string> }>(api, path)
    return map?.data?.['ca.crt'] ?? ''
  }

  return {
    api,
    close: async () => {
      api.close()
      await rm(directory, { recursive: true })
    },
    makeNode: async (name: string) => void (await createObject(api, NODES, made('Node', name))),
    deleteNode: async (name: string) => await deleteObject(api, nodePath(name), {}),
    uidOf: async (name: string) => (await getObject(api, nodePath(name)))?.metadata.uid,
    cordon: async (name: string, unschedulable: boolean) =>
      void (await changeNode(name, (node) => ({ ...node, spec: { ...node.spec, unschedulable } }))),
    taint: async (name: string, isTainted: boolean) => {
      const taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }
      const taints = isTainted ? [taint] : []
      await changeNode(name, (node) => ({ ...node, spec: { ...node.spec, taints } }))
    },
    setReady: async (name: string, isReady: boolean) =>
      await setNodeStatus(name, { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] }),
    readAuthority,
    hostObject: async (name: string) => await getObject<FakeObject>(api, `${hostObjects}/${name}`),
    anchorOf,
    /** The nodes that have one. */
    anchors: async () => (await listAnchors()).map(({ spec }) => spec?.['nodeName']),
    /** As the chart has it: it lets no anchor go. */
    makeBudget: async () =>
      void (await createObject(
        api,
        pathOf('apis', 'policy', 'v1', 'namespaces', NAMESPACE, 'poddisruptionbudgets'),
        {
          apiVersion: 'policy/v1',
          kind: 'PodDisruptionBudget',
          metadata: { name: 'berth-anchors' },
          spec: { minAvailable: 1_000_000, selector: { matchLabels: { 'berth.dev/anchor': 'true' } } },
        } as KubeObject,
      )),
    /** As a drain does; returns the status of a refusal, and null where there is nothing to evict any more. */
    evictAnchor: async (node: string): Promise<number | 'evicted' | null> => {
      const name = (await anchorOf(node))?.metadata.name
      if (name === undefined) return null
      const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } }
      return await api.call({ method: 'POST', path: `${anchorsPath}/${name}/eviction`, body }).then(
        () => 'evicted' as const,
        (error: { status?: number }) => error.status ?? 0,
      )
    },
    endAnchor: async (node: string) =>
      void (await setPodStatus((await anchorOf(node))?.metadata.name ?? '', { phase: 'Failed' })),
    /** Starts pods that are to run, and removes those that are to end. */
    actAsKubelet: async () => {
      for (const { metadata, status } of await listAnchors()) {
        if (metadata.deletionTimestamp !== undefined)
          await deleteObject(api, `${anchorsPath}/${metadata.name}`, { graceS: 0, uid: metadata.uid })
        else if (status?.['phase'] === undefined || status['phase'] === 'Pending')
          await setPodStatus(metadata.name, {
            phase: 'Running',
            conditions: [{ type: 'Ready', status: 'True' }],
          })
      }
    },
    /** As the DaemonSet's controller and the kubelet do: a pod on the node, with its token and the authority in a volume. */
    startHostPod: async ({ door }: { door: Address }, started: Started): Promise<HostPod> => {
      const { node, instance, subnet, audience = 'berth-server', account = 'berth-host' } = started
      const { namespace = NAMESPACE } = started
      const name = `host-${instance}`
      await deleteObject(api, `${inNamespace('pods', namespace)}/${name}`, { graceS: 0 })
      await createObject(api, inNamespace('pods', namespace), {
        ...made('Pod', name),
        spec: {
          nodeName: node,
          serviceAccountName: account,
          automountServiceAccountToken: false,
          containers: [{ name: 'host', image: 'none' }],
        },
      } as KubeObject)
      const pod = await getObject(api, `${inNamespace('pods', namespace)}/${name}`)
      const asked = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          audiences: [audience],
          expirationSeconds: 3600,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid: pod?.metadata.uid },
        },
      }
      const path = `${inNamespace('serviceaccounts', namespace)}/${account}/token`
      const issued = (await api.call({ method: 'POST', path, body: asked })) as { status: { token: string } }
      const secrets = join(directory, `${name}-${pod?.metadata.uid}`)
      const dataDir = join(directory, instance)
      for (const each of [secrets, dataDir]) await mkdir(each, { recursive: true })
      await writeFile(join(secrets, 'token'), started.token ?? issued.status.token)
      await writeFile(join(secrets, 'ca.crt'), await readAuthority())
      await writeFile(join(dataDir, 'instance.json'), JSON.stringify({ id: instance, subnet }))
      const config = loadConfig({
        BERTH_ROLE: 'host',
        BERTH_DATA_DIR: dataDir,
        BERTH_JOIN: `kubernetes:${door.host}:${door.port}`,
        BERTH_ENGINE_TLS: `127.0.0.1:${await freePort('127.0.0.1')}`,
      })
      return { config, secrets, nodeUid: (await getObject(api, nodePath(node)))?.metadata.uid ?? '' }
    },
  }
}
