// A session with one registry: skopeo in the fetch jail, for one pull. Its directory and its proxy are removed
// afterwards.

import { randomUUID } from 'node:crypto'
import { chown, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageReference } from '../../../contract/image-reference.ts'
import type { Account } from '../../../lib/system-users.ts'
import type { ImageLimits } from './image-limits.ts'
import type { HostPort } from '../../../lib/dial.ts'
import type { Charge } from '../kernel/team-groups.ts'
import { fetchFailed } from './failures.ts'
import { removeTree } from './files.ts'
import { runJailed } from './jail.ts'
import { openProxy } from './proxy.ts'
import { type Endpoint, findEndpoint, pickCredentials, registriesConf } from './registry-settings.ts'

export type RegistryOptions = {
  /** For sockets and credentials of pulls in progress. On a memory file system, so that they never reach a disk. */
  runDir: string
  mirrors: Record<string, string>
  authFile: string | null
  upstreamProxy: HostPort | null
  account: Account
  limits: ImageLimits
}

export type RegistrySession = {
  /** Returns skopeo's output. `writable` as in jail.ts. */
  skopeo(args: string[], timeoutMs: number, writable?: Record<string, string>): Promise<string>
  /** Bytes so far, with what is beside the image's own. */
  received(): number
  close(): Promise<void>
}

/** Beyond the layers: manifests, configuration, TLS, retries. */
const OVERHEAD_BYTES = 32 * 1024 * 1024

const settingsArguments = [
  '--policy=/settings/policy.json',
  '--registries-conf=/settings/registries.conf',
  '--tmpdir=/tmp',
]

export async function openRegistry(
  options: RegistryOptions,
  reference: ImageReference,
  { charge, signal }: { charge: Charge; signal: AbortSignal },
): Promise<RegistrySession> {
  const { account, limits } = options
  const directory = join(options.runDir, `pull-${randomUUID()}`)
  const settings = join(directory, 'settings')
  const socketPath = join(directory, 'proxy.sock')
  const endpoint = findEndpoint(reference.registry, options.mirrors)
  const cleanUp = () => removeTree(directory)
  try {
    await mkdir(directory, { mode: 0o700 })
    await writeSettings(options, reference.registry, endpoint, settings)
    const proxy = await openProxy({
      socketPath,
      mirror: endpoint.mirror,
      upstreamProxy: options.upstreamProxy,
      maxBytes: limits.compressedBytes + OVERHEAD_BYTES,
      stallMs: limits.stallMs,
    })
    await chown(socketPath, account.uid, account.gid)
    return {
      skopeo: async (args, timeoutMs, writable = {}) => {
        const readOnly = { '/settings': settings, '/berth/proxy.sock': socketPath, '/etc/ssl': '/etc/ssl' }
        const command = ['skopeo', ...settingsArguments, ...args]
        const result = await runJailed(
          {
            program: 'fetch',
            args: command,
            readOnly,
            writable,
            account,
            maxFileBytes: limits.compressedBytes,
            maxCpuS: limits.fetchCpuS,
          },
          { timeoutMs, maxOutputBytes: limits.documentBytes + 1, charge, signal },
        )
        if (result.exitCode !== 0) throw fetchFailed(reference, result, proxy.verdict())
        return result.stdout
      },
      received: () => proxy.received(),
      close: async () => {
        await proxy.close()
        await cleanUp()
      },
    }
  } catch (error) {
    await cleanUp()
    throw error
  }
}

async function writeSettings(
  { authFile, mirrors }: RegistryOptions,
  registry: string,
  endpoint: Endpoint,
  directory: string,
): Promise<void> {
  const credentials = authFile === null ? '{}' : await readFile(authFile, 'utf8')
  const files = {
    'auth.json': pickCredentials(credentials, registry, mirrors[registry], endpoint),
    'registries.conf': registriesConf(registry, endpoint),
    // Signatures are not checked: the digest of an image, and TLS to its registry, identify it.
    'policy.json': JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }),
  }
  // The jail's user reads them; others cannot pass the directory above.
  await mkdir(directory, { mode: 0o755 })
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(directory, name), text, { mode: 0o644 })
  }
}
