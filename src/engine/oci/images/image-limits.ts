// Limits on what an image may cost this host. An image is untrusted: every number it claims is checked before the
// download, and its actual use is watched (reliability I17).

const MB = 1024 * 1024
const GB = 1024 * MB
const SECOND = 1000

export type ImageLimits = {
  /** One manifest or index, and one image configuration: parsing them blocks everything else. */
  documentBytes: number
  /** The compressed size of all layers. */
  compressedBytes: number
  unpackedBytes: number
  files: number
  /** Nested directories: the unpacker looks at each level for every file. */
  depth: number
  layers: number
  resolveMs: number
  downloadMs: number
  /** CPU time of one run of the fetcher. */
  fetchCpuS: number
  unpackMs: number
  /** CPU time of an unpacking. */
  unpackCpuS: number
  buildMs: number
  /** A registry connection without data for this long is closed. */
  stallMs: number
}

export const imageLimits: ImageLimits = {
  documentBytes: MB,
  compressedBytes: 4 * GB,
  unpackedBytes: 12 * GB,
  files: 600_000,
  depth: 128,
  layers: 128,
  resolveMs: 30 * SECOND,
  downloadMs: 900 * SECOND,
  fetchCpuS: 300,
  unpackMs: 600 * SECOND,
  unpackCpuS: 300,
  buildMs: 900 * SECOND,
  stallMs: 20 * SECOND,
}
