// The memory of a unit's processes, as root reads it on the host: for gVisor that is the memory of its sandbox too.

import { type FileHandle, open, readdir, readFile } from 'node:fs/promises'

const PAGE_BYTES = 4096
const PIECE_BYTES = 1024 * PAGE_BYTES
/** Of /proc/PID/pagemap (its page of the Linux manual): one a page, whose highest bit says that the page is there. */
const ENTRY_BYTES = 8
const PRESENT = 128

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
  const pages = await open(`/proc/${pid}/pagemap`).catch(() => null)
  try {
    if (!memory || !pages) return false
    for (const [, from, to] of maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) r.*$/gm))
      if (await rangeHas({ memory, pages }, Number(`0x${from}`), Number(`0x${to}`), text)) return true
    return false
  } finally {
    await memory?.close()
    await pages?.close()
  }
}

/** Reads only what is there: to read another page would make it, at the expense of the unit, whose memory has a limit. */
async function rangeHas(
  { memory, pages }: { memory: FileHandle; pages: FileHandle },
  from: number,
  to: number,
  text: string,
): Promise<boolean> {
  let before = Buffer.alloc(0)
  for (let at = from; at < to; at += PIECE_BYTES) {
    const count = Math.min(PIECE_BYTES, to - at) / PAGE_BYTES
    const entries = Buffer.alloc(count * ENTRY_BYTES)
    const known = await pages.read(entries, 0, entries.length, (at / PAGE_BYTES) * ENTRY_BYTES)
    // The kernel's own pages have no entries.
    if (known.bytesRead < entries.length) return false
    for (let page = 0; page < count; page += 1) {
      const isThere = (entries[(page + 1) * ENTRY_BYTES - 1] ?? 0) >= PRESENT
      const piece = Buffer.alloc(PAGE_BYTES)
      const read = isThere
        ? await memory.read(piece, 0, PAGE_BYTES, at + page * PAGE_BYTES).catch(() => null)
        : null
      if (!read) {
        before = Buffer.alloc(0)
        continue
      }
      const all = Buffer.concat([before, piece.subarray(0, read.bytesRead)])
      if (all.includes(text)) return true
      before = all.subarray(-text.length)
    }
  }
  return false
}
