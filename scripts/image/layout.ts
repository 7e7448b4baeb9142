// Writes an image as an OCI layout. All of it follows from what is given, so the same trees have the same digest.

import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

export type Layer = { mediaType: string; digest: string; size: number; diffId: string }

export type Layout = {
  /** `tar`: the layer's files, as they are to be. */
  addLayer(tar: Readable): Promise<Layer>
  /** Returns the digest of the image. `epoch`: when it was made, in seconds. `config`: as the specification of OCI has it. */
  finish(image: { layers: Layer[]; epoch: number; config: object }): Promise<string>
}

const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json'
const LAYER_TYPE = 'application/vnd.oci.image.layer.v1.tar+gzip'
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64', arm64: 'arm64' }

export async function openLayout(directory: string): Promise<Layout> {
  const blobs = join(directory, 'blobs', 'sha256')
  await mkdir(blobs, { recursive: true })

  const addDocument = async (mediaType: string, value: object) => {
    const text = JSON.stringify(value)
    const hash = createHash('sha256').update(text).digest('hex')
    await writeFile(join(blobs, hash), text)
    return { mediaType, digest: `sha256:${hash}`, size: Buffer.byteLength(text) }
  }

  return {
    addLayer: async (tar) => {
      const path = join(blobs, 'layer')
      const [plain, packed] = [createHash('sha256'), createHash('sha256')]
      let size = 0
      const gzip = createGzip({ level: 6 })
      await Promise.all([
        pipeline(
          tar,
          passing((chunk) => void plain.update(chunk)),
          gzip,
        ),
        pipeline(
          gzip,
          passing((chunk) => {
            packed.update(chunk)
            size += chunk.length
          }),
          createWriteStream(path),
        ),
      ])
      const hash = packed.digest('hex')
      await rename(path, join(blobs, hash))
      return {
        mediaType: LAYER_TYPE,
        digest: `sha256:${hash}`,
        size,
        diffId: `sha256:${plain.digest('hex')}`,
      }
    },
    finish: async ({ layers, epoch, config }) => {
      const created = new Date(epoch * 1000).toISOString()
      const image = await addDocument('application/vnd.oci.image.config.v1+json', {
        created,
        architecture: ARCHITECTURES[process.arch],
        os: 'linux',
        config,
        rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
        history: layers.map(() => ({ created, created_by: 'npm run image' })),
      })
      const manifest = await addDocument(MANIFEST_TYPE, {
        schemaVersion: 2,
        mediaType: MANIFEST_TYPE,
        config: image,
        layers: layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
      })
      const index = { schemaVersion: 2, manifests: [manifest] }
      await writeFile(join(directory, 'index.json'), JSON.stringify(index))
      await writeFile(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
      return manifest.digest
    },
  }
}

function passing(see: (chunk: Buffer) => void) {
  return async function* pass(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      see(chunk)
      yield chunk
    }
  }
}
