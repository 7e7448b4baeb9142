// Registries on loopback: one in memory that serves whatever it is given, and Debian's own docker-registry.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { freePort } from '../../src/lib/free-port.ts'

export const manifestType = 'application/vnd.oci.image.manifest.v1+json'
export const indexType = 'application/vnd.oci.image.index.v1+json'
export const configType = 'application/vnd.oci.image.config.v1+json'
export const gzipLayerType = 'application/vnd.oci.image.layer.v1.tar+gzip'

export type Blob = { mediaType: string; digest: string; size: number; content: Buffer }
export type TestImage = { manifest: Blob; blobs: Blob[] }

export function blob(mediaType: string, content: Buffer | string): Blob {
  const bytes = Buffer.from(content)
  return { mediaType, digest: sha256(bytes), size: bytes.length, content: bytes }
}

export function descriptor({ mediaType, digest, size }: Blob) {
  return { mediaType, digest, size }
}

/** A sound image of uncompressed layers; `config` is its `config` object. */
export function testImage(layers: Buffer[], config: object = {}): TestImage {
  const document = {
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: layers.map(sha256) },
  }
  return imageOf(
    blob(configType, JSON.stringify(document)),
    layers.map((layer) => blob(gzipLayerType, gzipSync(layer, { level: 1 }))),
  )
}

export function imageOf(config: Blob, layers: Blob[], extra: object = {}): TestImage {
  const manifest = {
    schemaVersion: 2,
    mediaType: manifestType,
    config: descriptor(config),
    layers: layers.map(descriptor),
    ...extra,
  }
  return { manifest: blob(manifestType, JSON.stringify(manifest)), blobs: [config, ...layers] }
}

export function sha256(content: Buffer | string): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}

export type Requested = { method: string; url: string; authorization: string | undefined }

export type MemoryRegistry = {
  /** `127.0.0.1:PORT`. */
  address: string
  requests: Requested[]
  add(repository: string, tag: string, image: TestImage): void
  addManifest(repository: string, tag: string, manifest: Blob): void
  addBlob(blob: Blob): void
  /** Answers before everything else does; true when it has. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean
  close(): Promise<void>
}

/** Serves what it is given, true or not. */
export async function serveRegistry(port = 0): Promise<MemoryRegistry> {
  const manifests = new Map<string, Blob>()
  const blobs = new Map<string, Blob>()
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request
    registry.requests.push({ method, url, authorization: headers.authorization })
    if (registry.intercept(request, response)) return
    if (url === '/v2/') return void response.end('{}')
    const found = manifests.get(url) ?? blobs.get(url.slice(url.lastIndexOf('/') + 1))
    if (!found) {
      response.statusCode = 404
      return void response.end(JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: 'unknown' }] }))
    }
    response.setHeader('Content-Type', found.mediaType)
    response.setHeader('Content-Length', found.content.length)
    response.setHeader('Docker-Content-Digest', found.digest)
    response.end(method === 'HEAD' ? undefined : found.content)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const addManifest = (repository: string, tag: string, manifest: Blob) => {
    manifests.set(`/v2/${repository}/manifests/${tag}`, manifest)
    manifests.set(`/v2/${repository}/manifests/${manifest.digest}`, manifest)
  }
  const registry: MemoryRegistry = {
    address: `127.0.0.1:${portOf(server.address())}`,
    requests: [],
    addManifest,
    addBlob: (added) => void blobs.set(added.digest, added),
    add: (repository, tag, image) => {
      addManifest(repository, tag, image.manifest)
      for (const added of image.blobs) blobs.set(added.digest, added)
    },
    intercept: () => false,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return registry
}

export type DockerRegistry = { address: string; close(): Promise<void> }

/** `htpasswd` is the text of such a file (bcrypt); null lets anyone in. */
export async function startDockerRegistry(htpasswd: string | null): Promise<DockerRegistry> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-registry-'))
  const port = await freePort('127.0.0.1')
  await writeFile(join(directory, 'htpasswd'), htpasswd ?? '')
  const auth = { htpasswd: { realm: 'test', path: join(directory, 'htpasswd') } }
  const config = {
    version: '0.1',
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: join(directory, 'data') } },
    http: { addr: `127.0.0.1:${port}` },
    ...(htpasswd === null ? {} : { auth }),
  }
  // JSON is YAML.
  await writeFile(join(directory, 'config.yml'), JSON.stringify(config))
  const child = spawn('docker-registry', ['serve', join(directory, 'config.yml')], { stdio: 'ignore' })
  await untilListening(port)
  return {
    address: `127.0.0.1:${port}`,
    close: async () => {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
      await rm(directory, { recursive: true })
    },
  }
}

async function untilListening(port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const socket = connect(port, '127.0.0.1')
    const open = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (open) return
    await delay(50)
  }
  throw new Error(`nothing listens on port ${port}`)
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP')
  return address.port
}
