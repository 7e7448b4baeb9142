// `npm run bench:proxied`: the processor time that one small request costs the gateway, beside Debian's nginx as a proxy
// of the same origin, in turns, because the load of a machine changes. It wants `wrk`, and `nginx` or its path. Where
// other programs run, processor time says more than requests a second. With `--workers 2` also two gateways on one port; with
// `--quota 25` each gateway may use that part of a core, in percent, so that client and origin are not what it waits for (root).

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runOrThrow } from '../src/lib/process.ts'
import { type CpuQuota, createCpuQuota } from './cpu-quota.ts'
import { percentile } from './figures.ts'
import { startNginx } from './proxies.ts'
import { DOMAIN, loneGateway, makeCertificateFile, startGateway } from './start-gateway.ts'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '32' },
    nginx: { type: 'string', default: 'nginx' },
    workers: { type: 'string', default: '1' },
    quota: { type: 'string' },
    /** Other `bench/lone-gateway.ts`, as of a checkout before a change. */
    beside: { type: 'string', multiple: true, default: [] },
  },
})

const NAME = 'bench-abcdefghij'
const BODY = 'Hello from the origin.\n'

type Target = { name: string; url: string; cpuSeconds: () => number; samplesUs: number[]; rates: number[] }
type Started = { targets: Target[]; stop: () => Promise<void> }

const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
const origin = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': BODY.length }).end(BODY)
})
const started: Started[] = []
try {
  await once(origin.listen(0, '127.0.0.1'), 'listening')
  const { port } = origin.address() as AddressInfo
  started.push(await startPeer(port))
  for (const path of [loneGateway, ...options.beside]) started.push(await startOurs(path, port))
  if (options.workers !== '1') started.push(await startOurs(loneGateway, port, Number(options.workers)))
  const targets = started.flatMap((each) => each.targets)
  for (const target of targets) await measure(target)
  // The first time compiles.
  for (const { samplesUs, rates } of targets) samplesUs.length = rates.length = 0
  for (let round = 0; round < Number(options.rounds); round += 1)
    for (const target of targets) await measure(target)
  console.log(tableOf(targets))
} finally {
  for (const { stop } of started) await stop()
  origin.close().closeAllConnections()
  await rm(directory, { recursive: true, force: true })
}

function target(name: string, url: string, cpuSeconds: () => number): Target {
  return { name, url, cpuSeconds, samplesUs: [], rates: [] }
}

async function startPeer(port: number): Promise<Started> {
  const nginx = await startNginx(`127.0.0.1:${port}`, options.nginx)
  if (!nginx) throw new Error('there is nothing to compare with: nginx was not found')
  const targets = nginx.urls.map(({ name, url }) => target(name, url, nginx.cpuSeconds))
  return { targets, stop: () => nginx.stop() }
}

async function startOurs(path: string, port: number, workers = 1): Promise<Started> {
  const endpoints = { [NAME]: { port, protocol: 'http' as const } }
  const given = { certificate: await makeCertificateFile(directory), endpoints }
  const first = await startGateway(path, given)
  const gateways = [first]
  while (gateways.length < workers) gateways.push(await startGateway(path, { ...given, shared: first }))
  const quotas = await Promise.all(gateways.map(({ pid }) => limit(pid)))
  const own = workers === 1 ? 'gateway' : `${workers} gateways`
  const name = path === loneGateway ? own : path
  const cpuSeconds = () => gateways.reduce((sum, gateway) => sum + gateway.cpuSeconds(), 0)
  const targets = [
    target(name, `http://127.0.0.1:${first.http}/`, cpuSeconds),
    target(`${name}, TLS`, `https://127.0.0.1:${first.tls}/`, cpuSeconds),
  ]
  const stop = async () => {
    for (const gateway of gateways) await gateway.stop()
    for (const quota of quotas) await quota?.remove()
  }
  return { targets, stop }
}

async function limit(pid: number): Promise<CpuQuota | null> {
  if (options.quota === undefined) return null
  const quota = await createCpuQuota(`${pid}`, Number(options.quota))
  await quota.add(pid)
  return quota
}

async function measure({ url, cpuSeconds, samplesUs, rates }: Target): Promise<void> {
  const before = cpuSeconds()
  const args = ['-t1', `-c${options.connections}`, `-d${options.seconds}s`]
  const said = await runOrThrow('wrk', [...args, '-H', `Host: ${NAME}.${DOMAIN}`, url], { timeoutMs: 60_000 })
  if (said.includes('Non-2xx')) throw new Error(`${url} did not serve the origin's answer: ${said}`)
  samplesUs.push(((cpuSeconds() - before) * 1e6) / Number(/(\d+) requests in/.exec(said)?.[1]))
  rates.push(Number(/Requests\/sec:\s+(\d+)/.exec(said)?.[1]))
}

/** A gateway stands beside the nginx of its own scheme. */
function tableOf(targets: Target[]): string {
  const median = (samples: number[]) => percentile(samples, 0.5)
  const rows = targets.map(({ name, samplesUs, rates }) => {
    const peer = targets.find((other) => other.name === (name.endsWith('TLS') ? 'nginx, TLS' : 'nginx'))
    const ratio = median(samplesUs) / median(peer?.samplesUs ?? [])
    const all = samplesUs.toSorted((a, b) => a - b).map((us) => us.toFixed(0))
    return `| ${name} | ${all.join(', ')} | ${ratio.toFixed(2)} | ${median(rates).toFixed(0)} |`
  })
  const head = [
    '| | µs of processor time a request | median beside nginx | requests/s, median |',
    '|---|---|---|---|',
  ]
  return [`load ${loadavg()[0]?.toFixed(1)}`, '', ...head, ...rows].join('\n')
}
