// A session with one registry: skopeo in the fetch jail, for as long as one pull takes.

import { randomUUID } from 'node:crypto'
import { chown, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageReference } from '../../../contract/image-reference.ts'
import type { ImageCaps } from './caps.ts'
import type { HostPort } from './dial.ts'
import { fetchFailed, imageError } from './failures.ts'
import { runJailed, type Account } from './jail.ts'
import { type ImageManifest, digestOf, ManifestRefused, pickFromIndex, readManifest } from './manifest.ts'
import { openProxy } from './proxy.ts'
import { findEndpoint, pickCredentials, registriesConf } from './registry-settings.ts'
import { removeTree } from './store.ts'

export type RegistryOptions = {
  /** For sockets and credentials of running pulls. On a memory file system, so that they never reach a disk. */
  runDir: string
  mirrors: Record<string, string>
  authFile: string | null
  upstreamProxy: HostPort | null
  account: Account
  caps: ImageCaps
}

export type RegistrySession = {
  /** Asks what the reference leads to; nothing is downloaded. */
  resolve(): Promise<ImageManifest>
  /** Downloads into an empty directory: `manifest.json`, and blobs named by the hex of their digest. */
  download(manifest: ImageManifest, directory: string): Promise<void>
  close(): Promise<void>
}

/** Beyond the layers: manifests, configuration, TLS, retries. */
const OVERHEAD_BYTES = 32 * 1024 * 1024

const architectures: Record<string, string> = { x64: 'amd64', arm64: 'arm64' }

export async function openRegistry(
  options: RegistryOptions,
  reference: ImageReference,
  signal: AbortSignal,
): Promise<RegistrySession> {
  const { caps, account } = options
  const directory = join(options.runDir, `pull-${randomUUID()}`)
  const endpoint = findEndpoint(reference.registry, options.mirrors)
  const socketPath = join(directory, 'proxy.sock')
  await mkdir(directory, { mode: 0o700 })
  const proxy = await openProxy({
    socketPath,
    mirror: endpoint.mirror,
    upstreamProxy: options.upstreamProxy,
    maxBytes: caps.compressedBytes + OVERHEAD_BYTES,
    stallMs: caps.stallMs,
  })
  await chown(socketPath, account.uid, account.gid)
  await writeSettings(options, reference.registry, join(directory, 'settings'))

  const skopeo = async (args: string[], timeoutMs: number, writable: Record<string, string>) => {
    const result = await runJailed(
      {
        program: 'fetch',
        args: [
          'skopeo',
          '--policy',
          '/settings/policy.json',
          '--registries-conf',
          '/settings/registries.conf',
          '--tmpdir',
          '/tmp',
          ...args,
        ],
        readOnly: {
          '/settings': join(directory, 'settings'),
          '/berth/proxy.sock': socketPath,
          '/etc/ssl': '/etc/ssl',
        },
        writable,
        account,
        maxFileBytes: caps.compressedBytes,
      },
      { timeoutMs, maxOutputBytes: caps.documentBytes + 1, signal },
    )
    if (result.exitCode === 0) return result.stdout
    throw fetchFailed(reference.canonical, result, proxy.verdict())
  }

  const name = `docker://${reference.registry}/${reference.repository}`
  const inspect = async (suffix: string) =>
    await skopeo(['inspect', '--raw', '--authfile', '/settings/auth.json', name + suffix], caps.resolveMs, {})

  return {
    resolve: async () => {
      const text = await inspect(reference.digest === null ? `:${reference.tag}` : `@${reference.digest}`)
      return await readRemoteManifest(reference, text, inspect, caps)
    },
    download: async (manifest, target) => {
      await mkdir(target, { recursive: true, mode: 0o700 })
      await chown(target, account.uid, account.gid)
      const copy = ['copy', '--src-authfile', '/settings/auth.json', '--preserve-digests', '--quiet']
      await skopeo([...copy, `${name}@${manifest.digest}`, 'dir:/download'], caps.downloadMs, {
        '/download': target,
      })
    },
    close: async () => {
      await proxy.close()
      await removeTree(directory)
    },
  }
}

async function readRemoteManifest(
  reference: ImageReference,
  text: string,
  inspect: (suffix: string) => Promise<string>,
  caps: ImageCaps,
): Promise<ImageManifest> {
  try {
    // A pinned digest holds for what was answered, whatever the registry calls it.
    if (reference.digest !== null) checkDigest(text, reference.digest)
    const digest = pickFromIndex(text, architectures[process.arch] ?? process.arch)
    if (digest === null) return readManifest(text, caps)
    const ours = await inspect(`@${digest}`)
    checkDigest(ours, digest)
    return readManifest(ours, caps)
  } catch (error) {
    if (error instanceof ManifestRefused)
      throw imageError('image_invalid', reference.canonical, error.message)
    throw error
  }
}

function checkDigest(text: string, digest: string): void {
  if (digestOf(text) !== digest) throw new ManifestRefused('its manifest does not match its digest')
}

async function writeSettings(options: RegistryOptions, registry: string, directory: string): Promise<void> {
  const endpoint = findEndpoint(registry, options.mirrors)
  const authFile = options.authFile === null ? '{}' : await readFile(options.authFile, 'utf8')
  const files = {
    'auth.json': pickCredentials(authFile, registry, options.mirrors[registry], endpoint),
    'registries.conf': registriesConf(registry, endpoint),
    'policy.json': JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }),
  }
  // The jail's user reads them; nobody else gets through the directory above.
  await mkdir(directory, { mode: 0o755 })
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(directory, name), text, { mode: 0o644 })
  }
}
