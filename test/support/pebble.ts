// An authority that speaks ACME, Debian's `pebble`, with a DNS of its own in which every name leads to this host.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Agent, get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../src/lib/free-port.ts'
import { runOrThrow, SAFE_PATH } from '../../src/lib/process.ts'

export type Pebble = {
  directory: string
  /** Whom its clients have to trust. */
  caFile: string
  ca: string
  /** Of its DNS, for records: `POST set-txt`, `clear-txt`. */
  dnsUrl: string
  /** Those who verify what it issues have to trust this, in PEM. */
  root(): Promise<string>
  /** How many certificates it has issued. */
  issued(): number
  /** The names it was asked for. */
  output(): string
  close(): Promise<void>
}

export type PebbleOptions = {
  /** Where it looks for TLS-ALPN-01; port 1 where nobody proves anything. */
  tlsPort?: number
  validS?: number
}

export async function startPebble({
  tlsPort = 1,
  validS = 90 * 86_400,
}: PebbleOptions = {}): Promise<Pebble> {
  const home = await mkdtemp(join(tmpdir(), 'berth-pebble-'))
  const [port, managementPort, dnsPort, dnsManagementPort] = await Promise.all(
    Array.from({ length: 4 }, async () => await freePort('127.0.0.1')),
  )
  // Clients that are confined read its certificate.
  await chmod(home, 0o755)
  const [certificate, privateKey] = [join(home, 'cert.pem'), join(home, 'key.pem')]
  const made = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
  ]
  const named = ['-subj', '/CN=pebble', '-addext', 'subjectAltName=IP:127.0.0.1']
  const args = [...made, ...named, '-keyout', privateKey, '-out', certificate]
  await runOrThrow('openssl', args, { timeoutMs: 20_000 })
  const config = join(home, 'config.json')
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate,
    privateKey,
    httpPort: 1,
    tlsPort,
    certificateValidityPeriod: validS,
  }
  await writeFile(config, JSON.stringify({ pebble }))
  const listening = ['-dns01', `127.0.0.1:${dnsPort}`, '-management', `127.0.0.1:${dnsManagementPort}`]
  const silent = ['-defaultIPv6', '', '-http01', '', '-https01', '', '-tlsalpn01', '']
  const dns = start('pebble-challtestsrv', [...listening, ...silent])
  const authority = start('pebble', ['-config', config, '-dnsserver', `127.0.0.1:${dnsPort}`])
  const ca = await readFile(certificate, 'utf8')
  const rootOf = async () => await fetchTrusting(ca, `https://127.0.0.1:${managementPort}/roots/0`)
  for (let tries = 0; !(await rootOf().catch(() => null)); tries += 1) {
    if (tries > 100) throw new Error(`pebble does not answer:\n${authority.output()}`)
    await delay(50)
  }
  return {
    directory: `https://127.0.0.1:${port}/dir`,
    caFile: certificate,
    ca,
    dnsUrl: `http://127.0.0.1:${dnsManagementPort}`,
    root: rootOf,
    issued: () => authority.output().split('Issued certificate serial').length - 1,
    output: authority.output,
    async close() {
      await Promise.all([authority.stop(), dns.stop()])
      await rm(home, { recursive: true })
    },
  }
}

function start(command: string, args: string[]) {
  // Does not wait on purpose, and forgets one nonce in ten: with more of them an order in fifty meets five in a row, and fails.
  const env = {
    PATH: SAFE_PATH,
    PEBBLE_VA_NOSLEEP: '1',
    PEBBLE_WFE_NONCEREJECT: '10',
    PEBBLE_AUTHZREUSE: '0',
  }
  const child: ChildProcess = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  return {
    output: () => output,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

function fetchTrusting(ca: string, url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: new Agent({ ca }) }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve(text))
    })
    request.on('error', reject)
  })
}
