// `npm run bench:streams`: what the gateway makes of streams and connections, beside the proxies that people would put
// there instead: bytes over a TCP endpoint and 1 GB by HTTP/1 and HTTP/2 beside haproxy, new TLS connections beside
// haproxy, and pgbench beside stunnel; and beside all of them the least that Node does (stream-proxy.ts). Each peer has one
// thread, as the gateway has one process. All in turn, because the load of a machine changes; client and origin take
// processors too.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { freePort } from '../src/lib/free-port.ts'
import { runOrThrow } from '../src/lib/process.ts'
import { percentile } from './figures.ts'
import { startPostgresForPgbench } from './pgbench.ts'
import { end, startNginxWithFile, untilListening } from './proxies.ts'
import { cpuSecondsOf } from './service.ts'
import { DOMAIN, loneGateway, makeCertificateFile, startGateway } from './start-gateway.ts'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    megabytes: { type: 'string', default: '1024' },
    seconds: { type: 'string', default: '4' },
    /** A part of the titles of what is measured. */
    only: { type: 'string', default: '' },
  },
})

/** A way through one of the proxies: the port, and the name that the client asks for. */
type Way = { who: string; port: number; name: string; cpuSeconds: () => number }
type Sample = { amount: number; seconds: number; cpuSeconds: number }
type Figure = {
  title: string
  /** What `amount` counts, each for a second and for its processor time. */
  unit: string
  ways: Way[]
  run: (way: Way) => Promise<{ amount: number; seconds: number }>
}

const PYTHON = '/usr/bin/python3'
const script = fileURLToPath(new URL('stream-peer.py', import.meta.url))
const nodeProxy = fileURLToPath(new URL('stream-proxy.ts', import.meta.url))
const nameOf = (label: string) => `${label}-abcdefghij.${DOMAIN}`
const BYTES = Number(options.megabytes) * 1024 * 1024

const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
// Postgres runs as a user of its own.
await chmod(directory, 0o711)
const stops: (() => Promise<unknown>)[] = []
try {
  const figures = (await startEverything()).filter(({ title }) => title.includes(options.only))
  console.log(tableOf(await measureInTurn(figures)))
} finally {
  for (const stop of stops.toReversed()) await stop()
  await rm(directory, { recursive: true, force: true })
}

async function startEverything(): Promise<Figure[]> {
  const certificate = await makeCertificateFile(directory)
  const bytes = await startStreamOrigin()
  const nginx = await startNginxWithFile(BYTES)
  const postgres = await startPostgresForPgbench(join(directory, 'postgres'))
  stops.push(
    () => nginx.stop(),
    () => postgres.stop(),
  )
  const endpoints = {
    'bytes-abcdefghij': { port: bytes, protocol: 'redis' as const },
    'file-abcdefghij': { port: nginx.port, protocol: 'http' as const },
    'database-abcdefghij': { port: postgres.port, protocol: 'postgres' as const },
  }
  const gateway = await startGateway(loneGateway, { certificate, endpoints })
  stops.push(() => gateway.stop())
  const haproxy = await startHaproxy(certificate, { bytes, file: nginx.port })
  const stunnel = await startStunnel(certificate, postgres.port)
  const ours = (label: string): Way => ({
    who: 'gateway',
    port: gateway.tls,
    name: nameOf(label),
    cpuSeconds: gateway.cpuSeconds,
  })
  const theirs = (label: 'bytes' | 'file'): Way => ({
    ...haproxy[label],
    who: 'haproxy',
    name: nameOf(label),
  })
  const node = await startNodeProxy(certificate, {
    bytes: { port: bytes, protocol: 'tls' },
    file: { port: nginx.port, protocol: 'tls' },
    database: { port: postgres.port, protocol: 'postgres' },
  })
  const piped = (label: 'bytes' | 'file' | 'database'): Way => ({
    who: "Node's pipe",
    port: node.ports[label] ?? 0,
    name: nameOf(label),
    cpuSeconds: node.cpuSeconds,
  })
  const streams = [theirs('bytes'), ours('bytes'), piped('bytes')]
  const files = [theirs('file'), ours('file')]
  const filesPiped = [...files, piped('file')]
  return [
    { title: 'TCP endpoint, down', unit: 'GB', ways: streams, run: (way) => transfer(way, 'down') },
    { title: 'TCP endpoint, up', unit: 'GB', ways: streams, run: (way) => transfer(way, 'up') },
    { title: 'one file by HTTP/1', unit: 'GB', ways: filesPiped, run: (way) => download(way, '--http1.1') },
    { title: 'one file by HTTP/2', unit: 'GB', ways: files, run: (way) => download(way, '--http2') },
    {
      title: 'new TLS connections',
      unit: 'connection',
      ways: filesPiped,
      run: (way) => connections(way, 'full'),
    },
    { title: 'resumed', unit: 'connection', ways: filesPiped, run: (way) => connections(way, 'resumed') },
    {
      title: 'pgbench -S -c8',
      unit: 'transaction',
      ways: [{ ...stunnel, who: 'stunnel', name: nameOf('database') }, ours('database'), piped('database')],
      run: async (way) => await postgres.bench(way, Number(options.seconds)),
    },
  ]
}

/** The first round of each compiles, and is not counted. */
async function measureInTurn(figures: Figure[]): Promise<Map<Figure, Map<string, Sample[]>>> {
  const found = new Map(
    figures.map((figure) => [figure, new Map(figure.ways.map(({ who }) => [who, [] as Sample[]]))]),
  )
  for (let round = 0; round <= Number(options.rounds); round += 1)
    for (const figure of figures)
      for (const way of figure.ways) {
        const before = way.cpuSeconds()
        const made = await figure.run(way)
        const sample = { ...made, cpuSeconds: way.cpuSeconds() - before }
        if (round > 0) found.get(figure)?.get(way.who)?.push(sample)
      }
  return found
}

async function transfer({ port, name }: Way, direction: 'up' | 'down') {
  const args = [script, 'transfer', String(port), name, direction, String(BYTES)]
  return { amount: BYTES / 1e9, seconds: Number(await runOrThrow(PYTHON, args, { timeoutMs: 300_000 })) }
}

async function download({ port, name }: Way, version: string) {
  const to = ['--resolve', `${name}:${port}:127.0.0.1`, `https://${name}:${port}/file`]
  const args = [version, '--insecure', '--silent', '--fail', '--output', '/dev/null']
  const said = await runOrThrow('curl', [...args, '--write-out', '%{size_download} %{time_total}', ...to], {
    timeoutMs: 300_000,
  })
  const [bytes = 0, seconds = 0] = said.split(' ').map(Number)
  if (bytes !== BYTES) throw new Error(`${name} sent ${bytes} bytes`)
  return { amount: bytes / 1e9, seconds }
}

async function connections({ port, name }: Way, how: 'full' | 'resumed') {
  const args = [script, 'connect', String(port), name, how, options.seconds]
  const amount = Number(await runOrThrow(PYTHON, args, { timeoutMs: 60_000 }))
  return { amount, seconds: Number(options.seconds) }
}

async function startStreamOrigin(): Promise<number> {
  const child = spawn(PYTHON, [script, 'origin'], { stdio: ['ignore', 'pipe', 'inherit'] })
  stops.push(() => end(child))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return Number(line)
}

async function startHaproxy(
  certificate: string,
  origins: { bytes: number; file: number },
): Promise<Record<'bytes' | 'file', Pick<Way, 'port' | 'cpuSeconds'>>> {
  const [tcp, http] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')]
  const config = `
global
  nbthread 1
defaults
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen bytes
  mode tcp
  bind 127.0.0.1:${tcp} ssl crt ${certificate}
  server origin 127.0.0.1:${origins.bytes}
listen file
  mode http
  bind 127.0.0.1:${http} ssl crt ${certificate} alpn h2,http/1.1
  server origin 127.0.0.1:${origins.file}
`
  const path = join(directory, 'haproxy.cfg')
  await writeFile(path, config)
  const pid = startPeer('haproxy', ['-f', path])
  for (const port of [tcp, http]) await untilListening(port)
  const cpuSeconds = () => cpuSecondsOf(pid)
  return { bytes: { port: tcp, cpuSeconds }, file: { port: http, cpuSeconds } }
}

async function startStunnel(certificate: string, origin: number): Promise<Pick<Way, 'port' | 'cpuSeconds'>> {
  const port = await freePort('127.0.0.1')
  const path = join(directory, 'stunnel.conf')
  const service = `[database]\naccept = 127.0.0.1:${port}\nconnect = 127.0.0.1:${origin}\nprotocol = pgsql\n`
  await writeFile(path, `foreground = yes\ndebug = err\npid =\ncert = ${certificate}\n${service}`)
  const pid = startPeer('stunnel4', [path])
  await untilListening(port)
  return { port, cpuSeconds: () => cpuSecondsOf(pid) }
}

async function startNodeProxy(certificate: string, origins: Record<string, object>) {
  const args = [nodeProxy, certificate, JSON.stringify(origins)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  stops.push(() => end(child))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const pid = child.pid ?? 0
  return { ports: JSON.parse(line) as Record<string, number>, cpuSeconds: () => cpuSecondsOf(pid) }
}

function startPeer(command: string, args: string[]): number {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  child.once('error', (error) => {
    throw new Error(`${command} is not there (a Debian package has it): ${error.message}`)
  })
  stops.push(() => end(child))
  return child.pid ?? 0
}

/** Ratios are medians of the rounds' own: what a machine does meanwhile is in both of a round. */
function tableOf(found: Map<Figure, Map<string, Sample[]>>): string {
  const head = [
    '| | peer | and | a second, of both | ratio | processor time, of both | ratio |',
    '|---|---|---|---|---|---|---|',
  ]
  const median = (samples: number[]) => percentile(samples, 0.5)
  const rows = [...found].flatMap(([{ title, unit }, byWho]) => {
    const [[peer, ofPeer] = ['', []], ...others] = [...byWho]
    const rate = (samples: Sample[]) => samples.map(({ amount, seconds }) => amount / seconds)
    const cost = (samples: Sample[]) => samples.map(({ amount, cpuSeconds }) => cpuSeconds / amount)
    const isBytes = unit === 'GB'
    return others.map(([who, ofIt]) => {
      const ratio = (of: (samples: Sample[]) => number[]) =>
        median(of(ofIt).map((each, round) => each / (of(ofPeer)[round] ?? Number.NaN))).toFixed(2)
      const shown = (of: (samples: Sample[]) => number[], scale: number, digits: number) =>
        [ofPeer, ofIt].map((samples) => (median(of(samples)) * scale).toFixed(digits)).join(' / ')
      const rates = isBytes ? `${shown(rate, 1000, 0)} MB` : shown(rate, 1, 0)
      const costs = isBytes ? `${shown(cost, 1, 2)} s a GB` : `${shown(cost, 1e6, 0)} µs a ${unit}`
      return `| ${title} | ${peer} | ${who} | ${rates} | ${ratio(rate)} | ${costs} | ${ratio(cost)} |`
    })
  })
  return [`load ${loadavg()[0]?.toFixed(1)}, medians of ${options.rounds}`, '', ...head, ...rows].join('\n')
}
