// Opens forwarding no wider than machines need. Packets are forwarded if the interface they arrive on allows it: each
// wire does (slots.ts), and each uplink must, for the answers. If the host is not a router yet, only its uplinks are
// opened, and the tables refuse new connections through them (`opened`), so that the host still routes for no one
// else. If it is one already (because of Docker, for example), nothing is changed.

import { readFile, writeFile } from 'node:fs/promises'
import { routesHere } from './host-state.ts'

export type Uplinks = {
  /** Open only because of us: to be kept and guarded. */
  opened: string[]
  /** Those that are not open yet. The guard must be in place first. */
  toOpen: string[]
}

/** Returns what to open now, given what was opened before. */
export async function planUplinks(openedBefore: string[]): Promise<Uplinks> {
  if (await isForwarding('all')) return { opened: [], toOpen: [] }
  const uplinks = await listUplinks()
  const closed: string[] = []
  for (const name of uplinks) {
    if (!(await isForwarding(name))) closed.push(name)
  }
  return {
    opened: uplinks.filter((name) => closed.includes(name) || openedBefore.includes(name)),
    toOpen: closed,
  }
}

export async function setForwarding(name: string, on: boolean): Promise<void> {
  try {
    await writeFile(setting(name), on ? '1' : '0')
  } catch (error) {
    // The interface has been removed in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Restores what was opened, unless the host has become a router since. */
export async function closeUplinks(opened: string[]): Promise<void> {
  if (await isForwarding('all')) return
  for (const name of opened) await setForwarding(name, false)
}

/** Interfaces with a default route, or with the two halves of one that some tunnels set. */
async function listUplinks(): Promise<string[]> {
  const names = (await routesHere())
    .filter((route) => /\/[01]$/.test(route.destination))
    .flatMap((route) => route.interface ?? [])
  return [...new Set(names)].toSorted()
}

export async function isForwarding(name: string): Promise<boolean> {
  try {
    return (await readFile(setting(name), 'utf8')).trim() === '1'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

function setting(name: string): string {
  return `/proc/sys/net/ipv4/conf/${name}/forwarding`
}
