// One pull: resolves the reference and, unless that image is here, downloads, unpacks and stores it.

import { join } from 'node:path'
import type { ImageReference } from '../../../contract/image-reference.ts'
import type { Image } from '../../engine.ts'
import type { Charge } from '../kernel/team-groups.ts'
import { imageError } from './failures.ts'
import { readImageConfig } from './image-config.ts'
import { makeLayout } from './layout.ts'
import { type ImageManifest, ManifestRefused } from './manifest.ts'
import type { ProgressOfPull } from './progress.ts'
import { openRegistry, type RegistryOptions, type RegistrySession } from './registry.ts'
import { download, resolveManifest } from './remote.ts'
import type { ImageStore, BuildDirectory } from './store.ts'
import { unpack } from './unpack.ts'

export type PullOptions = {
  store: ImageStore
  registry: RegistryOptions
  reserveBytes: number
  progress: ProgressOfPull
  /** Whose expense the downloading and unpacking runs at. */
  charge: Charge
  signal: AbortSignal
}

/** Throws EngineError `image_…` or `host_full`. */
export async function pullImage(reference: ImageReference, options: PullOptions): Promise<Image> {
  options.progress.begin('downloading')
  const session = await openRegistry(options.registry, reference, options)
  try {
    const manifest = await resolveManifest(session, reference, options.registry.limits)
    // A pull of the same image from elsewhere does not wait for this registry, which may be slow on purpose.
    const of = { digest: manifest.digest, maker: `${reference.registry}/${reference.repository}` }
    const stored = await options.store.make(
      of,
      (workshop) => fill(reference, manifest, session, workshop, options),
      options.signal,
    )
    return stored.image
  } catch (error) {
    if (!(error instanceof ManifestRefused)) throw error
    throw imageError('image_invalid', reference.canonical, error.message)
  } finally {
    await session.close()
  }
}

async function fill(
  reference: ImageReference,
  manifest: ImageManifest,
  session: RegistrySession,
  { scratch, rootfs }: BuildDirectory,
  { registry, ...options }: PullOptions,
): Promise<Omit<Image, 'digest'>> {
  const { progress } = options
  const total = [manifest.config, ...manifest.layers].reduce((sum, { size }) => sum + size, 0)
  const before = session.received()
  progress.begin('downloading', () => ({ done: Math.min(total, session.received() - before), total }))
  const blobs = join(scratch, 'download')
  const layout = join(scratch, 'layout')
  await download(session, reference, manifest, blobs, registry)
  const config = readImageConfig(await makeLayout(manifest, blobs, layout))
  progress.begin('unpacking')
  await unpack(reference.canonical, { layout, rootfs }, { limits: registry.limits, ...options })
  return { reference: reference.canonical, config }
}
