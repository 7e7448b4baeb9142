// The gateway's peers: Debian's nginx and Caddy as plain reverse proxies in front of the same server, each started for
// the purpose, on ports and directories of its own.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../src/lib/free-port.ts'
import { run, runOrThrow } from '../src/lib/process.ts'
import { cpuSecondsOf } from './service.ts'

export type Peer = {
  urls: { name: string; url: string }[]
  cpuSeconds: () => number
  stop(): Promise<void>
}

/** Null where it is not installed. One worker: the gateway is one process, too. `command`: a path if it is not in PATH. */
export async function startNginx(origin: string, command = 'nginx'): Promise<Peer | null> {
  return await startPeer('nginx', command, async (directory, [http, https]) => {
    const spooled = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    const config = `
daemon off; worker_processes 1; pid ${directory}/pid; error_log /dev/null;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000;
  ${spooled.map((of) => `${of}_temp_path ${directory}/${of};`).join(' ')}
  upstream origin { server ${origin}; keepalive 64; }
  server {
    listen 127.0.0.1:${http}; listen 127.0.0.1:${https} ssl;
    ssl_certificate ${directory}/cert.pem; ssl_certificate_key ${directory}/key.pem;
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`
    await writeFile(join(directory, 'nginx.conf'), config)
    return ['-c', join(directory, 'nginx.conf')]
  })
}

/** An origin with one file of zeros at `/file`. */
export async function startNginxWithFile(
  bytes: number,
): Promise<{ port: number; stop: () => Promise<void> }> {
  const peer = await startPeer('nginx', 'nginx', async (directory, [http, second]) => {
    await writeFile(join(directory, 'file'), '')
    await truncate(join(directory, 'file'), bytes)
    const config = `
user root; daemon off; worker_processes 1; pid ${directory}/pid; error_log /dev/null;
events { worker_connections 1024; }
http {
  access_log off; sendfile on; keepalive_requests 1000000;
  server { listen 127.0.0.1:${http}; listen 127.0.0.1:${second}; root ${directory}; location = / { return 200 "Hello"; } }
}
`
    await writeFile(join(directory, 'nginx.conf'), config)
    return ['-c', join(directory, 'nginx.conf')]
  })
  if (!peer) throw new Error('nginx is not installed here (Debian: nginx).')
  return { port: Number(new URL(peer.urls[0]?.url ?? '').port), stop: () => peer.stop() }
}

/** Null where it is not installed. */
export async function startCaddy(origin: string): Promise<Peer | null> {
  return await startPeer('caddy', 'caddy', async (directory, [http, https]) => {
    const config = `
{
  admin off
  auto_https disable_redirects
}
http://127.0.0.1:${http}, http://localhost:${http} {
  reverse_proxy ${origin}
}
https://127.0.0.1:${https}, https://localhost:${https} {
  tls ${directory}/cert.pem ${directory}/key.pem
  reverse_proxy ${origin}
}
`
    await writeFile(join(directory, 'Caddyfile'), config)
    return ['run', '--config', join(directory, 'Caddyfile'), '--adapter', 'caddyfile']
  })
}

async function startPeer(
  name: string,
  command: string,
  configure: (directory: string, ports: [number, number]) => Promise<string[]>,
): Promise<Peer | null> {
  const found = await run('sh', ['-c', 'command -v "$1"', 'find', command], { timeoutMs: 5000 })
  if (found.exitCode !== 0) {
    console.log(`${name} is not installed here (Debian: ${name}): it is no peer in this run.`)
    return null
  }
  const directory = await mkdtemp(join(tmpdir(), `berth-bench-${name}-`))
  await makeCertificate(directory)
  const ports: [number, number] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')]
  const args = await configure(directory, ports)
  const env = { PATH: process.env['PATH'] ?? '', HOME: directory, GOMAXPROCS: '1' }
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'], env })
  const stop = async () => {
    await end(child)
    await rm(directory, { recursive: true, force: true })
  }
  try {
    for (const port of ports) await untilListening(port)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    urls: [
      { name, url: `http://127.0.0.1:${ports[0]}/` },
      { name: `${name}, TLS`, url: `https://127.0.0.1:${ports[1]}/` },
    ],
    cpuSeconds: () => cpuSecondsOf(child.pid ?? 0),
    stop,
  }
}

/** Of the same kind as the gateway's. */
export async function makeCertificate(directory: string): Promise<void> {
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const files = ['-keyout', join(directory, 'key.pem'), '-out', join(directory, 'cert.pem')]
  await runOrThrow('openssl', ['req', '-x509', ...kind, ...names, ...files], { timeoutMs: 20_000 })
}

export async function untilListening(port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    const socket = connect(port, '127.0.0.1')
    const isThere = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (isThere) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`nothing listens on port ${port}`)
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
}
