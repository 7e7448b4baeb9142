// Runs in the unpack jail: unpacks /layout into the root file system, watches the result, then makes it safe to store
// on a host. Ends with one JSON line, the outcome (../unpack.ts).

import { spawn } from 'node:child_process'
import { statfsSync } from 'node:fs'
import { clean, entriesBelow, rootfs } from './tree.ts'

type Limits = { bytes: number; files: number; depth: number; reserveBytes: number }

const WALK_EVERY_MS = 300
/** Watching uses at most this share of a core. */
const WALK_SHARE = 0.2

const limits = JSON.parse(process.argv[2] ?? '') as Limits
const umoci = spawn('umoci', ['raw', 'unpack', '--image', '/layout:image', rootfs], {
  stdio: ['ignore', 'ignore', 'inherit'],
})
let timer = setTimeout(watch, WALK_EVERY_MS)
umoci.on('error', () => end({ kind: 'failed' }))
umoci.on('close', (code, signal) => {
  clearTimeout(timer)
  // The jail limits its CPU time.
  if (signal === 'SIGKILL' || signal === 'SIGXCPU') end({ kind: 'too-slow' })
  if (code !== 0) end({ kind: 'failed' })
  const excess = findExcess()
  if (excess) end(excess)
  clean()
  end({ kind: 'unpacked' })
})

function watch(): void {
  const start = performance.now()
  const excess = findExcess()
  if (excess) end(excess)
  timer = setTimeout(watch, Math.max(WALK_EVERY_MS, (performance.now() - start) / WALK_SHARE))
}

function findExcess(): { kind: 'too-large' | 'too-many-files' | 'too-deep' | 'host-full' } | null {
  const disk = statfsSync('/image')
  if (disk.bavail * disk.bsize < limits.reserveBytes) return { kind: 'host-full' }
  let bytes = 0
  let files = 0
  for (const [path, stats] of entriesBelow(Buffer.from(rootfs))) {
    files += 1
    if (depthOf(path) > limits.depth) return { kind: 'too-deep' }
    // The space on the disk: a hole in a file costs nothing.
    bytes += stats.blocks * 512
    if (bytes > limits.bytes) return { kind: 'too-large' }
    if (files > limits.files) return { kind: 'too-many-files' }
  }
  return null
}

function end(outcome: object): never {
  process.stdout.write(`${JSON.stringify(outcome)}\n`)
  // Ends the jail, and umoci with it.
  process.exit(0)
}

const SLASH = 0x2f

/** Returns how many directories are above it, without the root. */
function depthOf(path: Buffer): number {
  let slashes = 0
  for (const byte of path.subarray(rootfs.length + 1)) if (byte === SLASH) slashes += 1
  return slashes
}
