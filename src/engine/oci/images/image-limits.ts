// What an image may cost this host. An image is a stranger's file: every number it claims is checked before
// the download, and what it really does is watched (reliability I17).

const MB = 1024 * 1024
const GB = 1024 * MB
const SECOND = 1000

export type ImageLimits = {
  /** Of one manifest or index, and of one image configuration: parsing them holds up everything else. */
  documentBytes: number
  /** All layers as they travel. */
  compressedBytes: number
  unpackedBytes: number
  files: number
  /** Directories within each other: what unpacks a file looks at each on the way. */
  depth: number
  layers: number
  resolveMs: number
  downloadMs: number
  /** Processor time of one run of the fetcher. */
  fetchCpuS: number
  unpackMs: number
  /** Processor time of an unpacking. */
  unpackCpuS: number
  buildMs: number
  /** A registry connection without a byte for this long is dropped. */
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
