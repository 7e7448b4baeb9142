// The size of /dev/shm. It is half of the machine's memory, as of a Linux host's: browsers and libraries that compute share pages
// there, and end with less. What lies in it counts against the machine's limit as all of its memory does.
//
// Memory is only restored into mounts as it was saved from, so the size of a run goes with what was saved of it.

import type { MachineSpec } from '../../engine.ts'

/** What every run of earlier versions had, which did not write it down. */
const EARLIER_BYTES = 64 * 1024 * 1024

/** Of a run that begins. */
export function shmBytesOf({ size }: Pick<MachineSpec, 'size'>): number {
  return (size.memoryMb * 1024 * 1024) / 2
}

/** Of a run or a checkpoint that was written down. */
export function writtenShmBytes({ shmBytes }: { shmBytes?: number | undefined }): number {
  return shmBytes ?? EARLIER_BYTES
}
