// The memory of a unit's processes, as root reads it on the host: for gVisor that is the memory of its sandbox too.

import { open, readdir, readFile } from 'node:fs/promises'

const PIECE_BYTES = 4 * 1024 * 1024

/** Returns the ids of the unit's processes that have the text in their memory. */
export async function processesHolding(unitId: string, text: string): Promise<number[]> {
  const holding: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const groups = await readFile(`/proc/${name}/cgroup`, 'utf8').catch(() => '')
    if (groups.includes(unitId) && (await holds(name, text))) holding.push(Number(name))
  }
  return holding
}

/** A process that ended holds nothing. */
async function holds(pid: string, text: string): Promise<boolean> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8').catch(() => '')
  const memory = await open(`/proc/${pid}/mem`).catch(() => null)
  if (!memory) return false
  try {
    for (const [, from, to] of maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) r.*$/gm))
      if (await rangeHas(memory, BigInt(`0x${from}`), BigInt(`0x${to}`), text)) return true
    return false
  } finally {
    await memory.close()
  }
}

async function rangeHas(
  memory: Awaited<ReturnType<typeof open>>,
  from: bigint,
  to: bigint,
  text: string,
): Promise<boolean> {
  let before = Buffer.alloc(0)
  for (let at = from; at < to; at += BigInt(PIECE_BYTES)) {
    const length = Math.min(PIECE_BYTES, Number(to - at))
    const piece = Buffer.alloc(length)
    const read = await memory.read(piece, 0, length, at).catch(() => null)
    // What only the kernel may read, and addresses that a sandbox has reserved.
    if (!read) return false
    const all = Buffer.concat([before, piece.subarray(0, read.bytesRead)])
    if (all.includes(text)) return true
    before = all.subarray(-text.length)
  }
  return false
}
