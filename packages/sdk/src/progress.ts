// How far the creation of a unit is, in words.

import type { Unit } from './contract.ts'

export type UnitProgress = NonNullable<Unit['progress']>

const words = {
  waiting: 'Waiting for its turn',
  downloading: 'Downloading the image',
  unpacking: 'Unpacking the image',
  building: 'Building the image',
  copying: 'Copying',
  preparing: 'Preparing its disk and network',
  starting: 'Starting',
  checking: 'Waiting for its healthcheck',
} as const satisfies Record<UnitProgress['stage'], string>

/** `Downloading the image: 12 of 80 MB`. */
export function describeProgress({ stage, bytes }: UnitProgress): string {
  // A service that is newer may have other stages.
  const text = (words as Partial<Record<string, string>>)[stage] ?? stage
  return bytes ? `${text}: ${megabytes(bytes.done)} of ${megabytes(bytes.total)} MB` : text
}

const megabytes = (bytes: number) =>
  bytes < 10_000_000 ? (bytes / 1_000_000).toFixed(1) : String(Math.round(bytes / 1_000_000))
