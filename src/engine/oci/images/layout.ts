// Turns a download into the layout that umoci reads. The manifest is written again from the validated one, so that
// the unpacker gets nothing from the registry but blobs, which it checks against their digests.

import { lstat, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { digestOf, type Descriptor, type ImageManifest, ManifestRefused } from './manifest.ts'

const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json'

/** Moves the blobs of `download` into a new OCI layout with one image, `image`; returns the configuration. */
export async function makeLayout(manifest: ImageManifest, download: string, layout: string): Promise<string> {
  const blobs = join(layout, 'blobs', 'sha256')
  await mkdir(blobs, { recursive: true })
  for (const blob of uniqueBlobs(manifest)) {
    const path = join(blobs, hexOf(blob))
    // A rename moves a link, and does not follow it.
    await rename(join(download, hexOf(blob)), path)
    const stats = await lstat(path)
    if (!stats.isFile() || stats.size !== blob.size)
      throw new ManifestRefused('its sizes are not as declared')
  }
  const config = await readFile(join(blobs, hexOf(manifest.config)))
  if (digestOf(config) !== manifest.config.digest) {
    throw new ManifestRefused('its configuration does not match its digest')
  }
  await writeDocuments(manifest, layout, blobs)
  return config.toString('utf8')
}

async function writeDocuments(manifest: ImageManifest, layout: string, blobs: string): Promise<void> {
  const { digest, size } = manifest.config
  const text = JSON.stringify({
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: { mediaType: CONFIG_TYPE, digest, size },
    layers: manifest.layers,
  })
  const entry = {
    mediaType: MANIFEST_TYPE,
    digest: digestOf(text),
    size: Buffer.byteLength(text),
    annotations: { 'org.opencontainers.image.ref.name': 'image' },
  }
  await writeFile(join(blobs, hexOf(entry)), text)
  await writeFile(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [entry] }))
  await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
}

function uniqueBlobs({ config, layers }: ImageManifest): Descriptor[] {
  return [...new Map([config, ...layers].map((blob) => [blob.digest, blob])).values()]
}

function hexOf({ digest }: { digest: string }): string {
  return digest.slice('sha256:'.length)
}
