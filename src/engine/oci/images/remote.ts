// The requests to a registry: resolve a reference, and download its blobs. Every answer is checked against its digest
// here, whatever the fetcher has checked.

import { chown, mkdir } from 'node:fs/promises'
import type { ImageReference } from '../../../contract/image-reference.ts'
import type { Account } from '../../../lib/system-users.ts'
import type { ImageLimits } from './image-limits.ts'
import { digestOf, type ImageManifest, ManifestRefused, pickFromIndex, readManifest } from './manifest.ts'
import type { RegistrySession } from './registry.ts'

const architectures: Record<string, string> = { x64: 'amd64', arm64: 'arm64' }

/** Returns the manifest of the variant for this host; downloads nothing. Throws ManifestRefused. */
export async function resolveManifest(
  session: RegistrySession,
  reference: ImageReference,
  limits: ImageLimits,
): Promise<ImageManifest> {
  const inspect = async (suffix: string) =>
    await session.skopeo(
      ['inspect', '--raw', '--authfile=/settings/auth.json', nameOf(reference) + suffix],
      limits.resolveMs,
    )
  const text = await inspect(reference.digest === null ? `:${reference.tag}` : `@${reference.digest}`)
  // A pinned digest must match the answer itself, whatever the registry calls it.
  if (reference.digest !== null) checkDigest(text, reference.digest)
  const digest = pickFromIndex(text, architectures[process.arch] ?? process.arch)
  if (digest === null) return readManifest(text, limits)
  const variant = await inspect(`@${digest}`)
  checkDigest(variant, digest)
  return readManifest(variant, limits)
}

/** Downloads into a new directory: `manifest.json`, and every blob, named by the hex of its digest. */
export async function download(
  session: RegistrySession,
  reference: ImageReference,
  manifest: ImageManifest,
  directory: string,
  { account, limits }: { account: Account; limits: ImageLimits },
): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await chown(directory, account.uid, account.gid)
  await session.skopeo(
    [
      'copy',
      '--quiet',
      '--preserve-digests',
      '--src-authfile=/settings/auth.json',
      `${nameOf(reference)}@${manifest.digest}`,
      'dir:/download',
    ],
    limits.downloadMs,
    { '/download': directory },
  )
}

function nameOf({ registry, repository }: ImageReference): string {
  return `docker://${registry}/${repository}`
}

function checkDigest(text: string, digest: string): void {
  if (digestOf(text) !== digest) throw new ManifestRefused('its manifest does not match its digest')
}
