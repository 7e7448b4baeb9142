// One pull: what does the reference lead to, and unless that is here already: download, unpack, keep.

import type { ImageReference } from '../../../contract/image-reference.ts'
import type { Image } from '../../engine.ts'
import { imageError } from './failures.ts'
import { readImageConfig } from './image-config.ts'
import { makeLayout } from './layout.ts'
import { type ImageManifest, ManifestRefused } from './manifest.ts'
import { openRegistry, type RegistryOptions, type RegistrySession } from './registry.ts'
import type { ImageStore, Workshop } from './store.ts'
import { unpack } from './unpack.ts'

export type PullOptions = {
  store: ImageStore
  registry: RegistryOptions
  reserveBytes: number
  signal: AbortSignal
}

/** Throws EngineError `image_…` or `host_full`. */
export async function pullImage(reference: ImageReference, options: PullOptions): Promise<Image> {
  const session = await openRegistry(options.registry, reference, options.signal)
  try {
    const manifest = await session.resolve()
    const stored = await options.store.make(
      manifest.digest,
      (workshop) => fill(reference.canonical, manifest, session, workshop, options),
      options.signal,
    )
    return stored.image
  } finally {
    await session.close()
  }
}

async function fill(
  reference: string,
  manifest: ImageManifest,
  session: RegistrySession,
  { scratch, rootfs }: Workshop,
  { registry, reserveBytes, signal }: PullOptions,
): Promise<Omit<Image, 'digest'>> {
  const download = `${scratch}/download`
  const layout = `${scratch}/layout`
  await session.download(manifest, download)
  const config = await readConfig(reference, manifest, download, layout)
  await unpack(reference, { layout, rootfs }, { caps: registry.caps, reserveBytes, signal })
  return { reference, config }
}

async function readConfig(reference: string, manifest: ImageManifest, download: string, layout: string) {
  try {
    return readImageConfig(await makeLayout(manifest, download, layout))
  } catch (error) {
    const reason = error instanceof ManifestRefused ? error.message : 'its configuration is not usable'
    throw imageError('image_invalid', reference, reason, error)
  }
}
