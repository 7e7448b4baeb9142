// A real control plane of Kubernetes on loopback, without nodes: etcd, API server, scheduler and controllers. Nodes and pods
// are made ready by hand, through their status.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ApiAccess } from '../../../src/kubernetes/api.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { freePort } from '../../../src/lib/free-port.ts'
import { runOrThrow } from '../../../src/lib/process.ts'
import { kubernetesProgram } from './programs.ts'

export type ControlPlane = {
  directory: string
  /** Of an account that may do everything. */
  access: ApiAccess
  /** The same for kubectl and helm. */
  kubeconfig: string
  /** Ends the API server, as in an outage, and starts it again. */
  stopApi(): Promise<void>
  startApi(): Promise<void>
  close(): Promise<void>
}

const HOST = '127.0.0.1'
const TIMEOUT_MS = 20_000
const READY_WITHIN_MS = 180_000

/** @param flags More flags of the API server. */
export async function startControlPlane({ flags = [] }: { flags?: string[] } = {}): Promise<ControlPlane> {
  const program = await kubernetesProgram('berth-kube')
  const directory = await mkdtemp(join(tmpdir(), 'berth-kubernetes-'))
  const children = new Map<string, ChildProcess>()
  const freeOne = async () => await freePort(HOST)
  const ports = {
    api: await freeOne(),
    etcd: await freeOne(),
    peer: await freeOne(),
    scheduler: await freeOne(),
    controllers: await freeOne(),
  }
  const start = async (name: string, args: string[]) => {
    const log = await open(join(directory, `${name}.log`), 'a')
    // A run of tests that is killed leaves none of them.
    const command = ['--pdeathsig', 'KILL', program, name, ...args]
    const child = spawn('setpriv', command, { cwd: directory, stdio: ['ignore', log.fd, log.fd] })
    children.set(name, child)
    await once(child, 'spawn')
    await log.close()
  }
  const stop = async (name: string) => {
    const child = children.get(name)
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  const close = async () => {
    for (const name of [...children.keys()].toReversed()) await stop(name)
    await rm(directory, { recursive: true })
  }
  const startApi = async () => {
    await start('kube-apiserver', [...apiFlags(ports), ...flags])
    await waitUntilReady(directory, ports.api, () => children.get('kube-apiserver')?.exitCode ?? null)
  }
  try {
    await makeCertificates(directory)
    for (const name of ['scheduler', 'controllers']) await writeKubeconfig(directory, ports.api, name)
    const [url, peer] = [`http://${HOST}:${ports.etcd}`, `http://${HOST}:${ports.peer}`]
    const etcd = [
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      `--listen-peer-urls=${peer}`,
    ]
    const cluster = [`--initial-advertise-peer-urls=${peer}`, `--initial-cluster=default=${peer}`]
    await start('etcd', ['--data-dir=etcd', '--unsafe-no-fsync', ...etcd, ...cluster])
    await startApi()
    await start('kube-scheduler', [...clientFlags('scheduler', ports.scheduler)])
    await start('kube-controller-manager', [
      ...clientFlags('controllers', ports.controllers),
      '--service-account-private-key-file=sa.key',
      '--root-ca-file=ca.crt',
      '--use-service-account-credentials',
    ])
    await makeAdmin(directory, ports.api)
    const access = {
      host: HOST,
      port: ports.api,
      caFile: join(directory, 'ca.crt'),
      tokenFile: join(directory, 'token'),
    }
    const kubeconfig = join(directory, 'admin.kubeconfig')
    return { directory, access, kubeconfig, startApi, stopApi: () => stop('kube-apiserver'), close }
  } catch (error) {
    await close()
    throw error
  }
}

const apiFlags = ({ api, etcd }: { api: number; etcd: number }) => [
  `--etcd-servers=http://${HOST}:${etcd}`,
  `--bind-address=${HOST}`,
  `--advertise-address=${HOST}`,
  `--secure-port=${api}`,
  '--tls-cert-file=server.crt',
  '--tls-private-key-file=server.key',
  '--client-ca-file=ca.crt',
  '--service-account-key-file=sa.key',
  '--service-account-signing-key-file=sa.key',
  '--service-account-issuer=https://kubernetes.default.svc',
  '--service-cluster-ip-range=10.96.0.0/24',
  '--authorization-mode=Node,RBAC',
  '--allow-privileged=true',
  '--endpoint-reconciler-type=none',
  '--cert-dir=.',
]

const clientFlags = (name: string, port: number) => [
  `--kubeconfig=${name}.kubeconfig`,
  `--authentication-kubeconfig=${name}.kubeconfig`,
  `--authorization-kubeconfig=${name}.kubeconfig`,
  '--leader-elect=false',
  `--bind-address=${HOST}`,
  `--secure-port=${port}`,
  '--cert-dir=.',
]

async function makeCertificates(directory: string): Promise<void> {
  const openssl = async (...args: string[]) =>
    await runOrThrow('openssl', args, { cwd: directory, timeoutMs: TIMEOUT_MS })
  const make = async (name: string, subject: string, ...more: string[]) => {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`]
    await openssl('req', '-x509', '-days', '2', ...key, '-subj', subject, '-out', `${name}.crt`, ...more)
  }
  const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-addext', 'basicConstraints=critical,CA:FALSE']
  await make('ca', '/CN=lab')
  await make('server', '/CN=kube-apiserver', ...signed, '-addext', `subjectAltName=IP:${HOST},DNS:localhost`)
  await make('first', '/O=system:masters/CN=first', ...signed)
  await make('controllers', '/CN=system:kube-controller-manager', ...signed)
  await make('scheduler', '/CN=system:kube-scheduler', ...signed)
  await openssl('genrsa', '-out', 'sa.key', '2048')
}

async function writeKubeconfig(directory: string, port: number, name: string): Promise<void> {
  const user =
    name === 'admin'
      ? { tokenFile: join(directory, 'token') }
      : { 'client-certificate': join(directory, `${name}.crt`), 'client-key': join(directory, `${name}.key`) }
  const cluster = { server: `https://${HOST}:${port}`, 'certificate-authority': join(directory, 'ca.crt') }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'lab', cluster }],
    users: [{ name, user }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: name } }],
    'current-context': 'lab',
  }
  await writeFile(join(directory, `${name}.kubeconfig`), JSON.stringify(config))
}

/** As the first user, who has a certificate. */
async function ask(directory: string, port: number, path: string, body?: unknown): Promise<string> {
  const [ca, cert, key] = await Promise.all(
    ['ca.crt', 'first.crt', 'first.key'].map(async (name) => await readFile(join(directory, name))),
  )
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const method = body === undefined ? 'GET' : 'POST'
  const headers = { 'content-type': 'application/json' }
  const asked = request(
    { host: HOST, port, path, method, headers, ca, cert, key, agent: false },
    (response) => {
      let text = ''
      response.on('data', (part) => (text += String(part)))
      response.on('end', () => resolve(text))
    },
  )
  asked.on('error', reject)
  asked.end(body === undefined ? undefined : JSON.stringify(body))
  return await promise
}

async function waitUntilReady(directory: string, port: number, exitCode: () => number | null): Promise<void> {
  const untilMs = systemClock.monotonicMs() + READY_WITHIN_MS
  for (;;) {
    if ((await ask(directory, port, '/readyz').catch(() => '')) === 'ok') return
    if (exitCode() !== null || systemClock.monotonicMs() > untilMs) {
      const log = await readFile(join(directory, 'kube-apiserver.log'), 'utf8')
      throw new Error(`the API server is not ready: ${log.slice(-2000)}`)
    }
    await systemClock.sleep(200)
  }
}

async function makeAdmin(directory: string, port: number): Promise<void> {
  const namespace = '/api/v1/namespaces/kube-system'
  const metadata = { name: 'berth-test' }
  const post = async (path: string, body: unknown) => await ask(directory, port, path, body)
  await post(`${namespace}/serviceaccounts`, { apiVersion: 'v1', kind: 'ServiceAccount', metadata })
  const group = 'rbac.authorization.k8s.io'
  await post(`/apis/${group}/v1/clusterrolebindings`, {
    apiVersion: `${group}/v1`,
    kind: 'ClusterRoleBinding',
    metadata,
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: metadata.name, namespace: 'kube-system' }],
  })
  const asked = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 36_000 },
  }
  const answer = await post(`${namespace}/serviceaccounts/${metadata.name}/token`, asked)
  const { status } = JSON.parse(answer) as { status?: { token: string } }
  if (!status) throw new Error(`the API server gave no token: ${answer}`)
  await writeFile(join(directory, 'token'), status.token)
  await writeKubeconfig(directory, port, 'admin')
}
