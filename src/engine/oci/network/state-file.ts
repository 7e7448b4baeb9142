// The network's state that must survive a restart and cannot be read from the host: `network.json`.

import { renameSync, writeFileSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export type NetworkState = {
  /** The next address (addresses.ts). */
  turn: number
  /** Interfaces whose forwarding we turned on (uplinks.ts). */
  opened: string[]
}

export type StateFile = {
  read: () => NetworkState
  write: (change: Partial<NetworkState>) => void
  /** Reserves turns well ahead, so that few starts of machines cost a write. */
  reserveTurn: (turn: number) => void
}

const TURNS_AHEAD = 256

export async function openStateFile(stateDir: string): Promise<StateFile> {
  const path = join(stateDir, 'network.json')
  await mkdir(stateDir, { recursive: true, mode: 0o700 })
  let notes = await load(path)
  // Synchronous, so that two writes cannot overlap: it is a few bytes, once in many starts.
  const write = (change: Partial<NetworkState>) => {
    notes = { ...notes, ...change }
    writeFileSync(`${path}.new`, JSON.stringify(notes), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  }
  return {
    read: () => notes,
    write,
    reserveTurn(turn) {
      const isNoted = turn <= notes.turn && turn > notes.turn - TURNS_AHEAD
      if (!isNoted) write({ turn: turn + TURNS_AHEAD })
    },
  }
}

/** Without a valid file, the turn starts from the beginning and no interface counts as opened by us. */
async function load(path: string): Promise<NetworkState> {
  try {
    const found: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (typeof found !== 'object' || found === null) return { turn: 0, opened: [] }
    const { turn, opened } = found as { turn?: unknown; opened?: unknown }
    return {
      turn: typeof turn === 'number' && Number.isInteger(turn) ? turn : 0,
      opened: Array.isArray(opened) ? opened.filter((name) => typeof name === 'string') : [],
    }
  } catch {
    return { turn: 0, opened: [] }
  }
}
