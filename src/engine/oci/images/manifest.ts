// Validates what a registry says an image consists of, before anything is downloaded: only known media types, and
// sizes within the limits. Pure.

import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { ImageLimits } from './image-limits.ts'

export type Descriptor = { mediaType: string; digest: string; size: number }
export type ImageManifest = { digest: string; config: Descriptor; layers: Descriptor[] }

/** Its message may reach the caller: what about the image is refused. */
export class ManifestRefused extends Error {}

const indexTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
]

/** Maps layer types to those of an OCI layout. Foreign layers, which name URLs of their own, are not included. */
const layerTypes: Record<string, string> = {
  'application/vnd.oci.image.layer.v1.tar': 'application/vnd.oci.image.layer.v1.tar',
  'application/vnd.oci.image.layer.v1.tar+gzip': 'application/vnd.oci.image.layer.v1.tar+gzip',
  'application/vnd.docker.image.rootfs.diff.tar': 'application/vnd.oci.image.layer.v1.tar',
  'application/vnd.docker.image.rootfs.diff.tar.gzip': 'application/vnd.oci.image.layer.v1.tar+gzip',
}

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/)
const descriptor = z.object({
  mediaType: z.string(),
  digest,
  size: z.int().min(0),
  urls: z.array(z.unknown()).max(0).nullish(),
})
const manifestSchema = z.object({ config: descriptor, layers: z.array(descriptor).min(1) })
const indexSchema = z.object({
  manifests: z
    .array(
      z.object({
        mediaType: z.string(),
        digest,
        platform: z.object({ os: z.string(), architecture: z.string() }).nullish(),
      }),
    )
    .max(1000),
})

export function digestOf(bytes: string | Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

/** Returns the digest of our platform in an index of several platforms. Null if it is not an index. */
export function pickFromIndex(text: string, architecture: string): string | null {
  const document = parseDocument(text)
  if (!('manifests' in document)) return null
  // A document that is an index to one reader and an image to another is an attack.
  if ('layers' in document || 'config' in document) throw new ManifestRefused('its manifest is ambiguous')
  const { manifests } = readAs(indexSchema, document)
  const ours = manifests.find(
    (entry) =>
      entry.platform?.os === 'linux' &&
      entry.platform.architecture === architecture &&
      // Nested indexes are refused, since they can be endless.
      !indexTypes.includes(entry.mediaType),
  )
  if (!ours) throw new ManifestRefused(`it has no variant for linux/${architecture}`)
  return ours.digest
}

/** Throws ManifestRefused for anything that is not an image, or exceeds the limits. */
export function readManifest(text: string, limits: ImageLimits): ImageManifest {
  const document = parseDocument(text)
  if ('manifests' in document) throw new ManifestRefused('its manifest is ambiguous')
  const { config, layers } = readAs(manifestSchema, document)
  if (layers.length > limits.layers) {
    throw new ManifestRefused(`it has ${layers.length} layers, and ${limits.layers} are allowed`)
  }
  if (config.size > limits.documentBytes) throw new ManifestRefused('its configuration is too large')
  const bytes = layers.reduce((sum, layer) => sum + layer.size, 0)
  if (bytes > limits.compressedBytes) {
    throw new ManifestRefused(`its layers have ${bytes} bytes, and ${limits.compressedBytes} are allowed`)
  }
  return { digest: digestOf(text), config, layers: layers.map(readLayer) }
}

function readLayer(layer: Descriptor): Descriptor {
  const mediaType = layerTypes[layer.mediaType]
  if (mediaType === undefined) {
    throw new ManifestRefused('it has a layer that is neither tar nor tar with gzip')
  }
  return { mediaType, digest: layer.digest, size: layer.size }
}

function parseDocument(text: string): object {
  try {
    const document: unknown = JSON.parse(text)
    if (typeof document === 'object' && document !== null) return document
  } catch {
    // Refused below.
  }
  throw new ManifestRefused('its manifest is not JSON')
}

function readAs<T>(schema: z.ZodType<T>, document: object): T {
  const read = schema.safeParse(document)
  if (!read.success) throw new ManifestRefused('its manifest is not one of an image')
  return read.data
}
