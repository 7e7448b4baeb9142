// Forwarding, opened no wider than machines need. Packets are forwarded when the interface they come in on
// says so: each wire does (slots.ts), and each uplink must, for the answers. Where the host is no router
// yet, only its uplinks are opened, and the tables refuse new connections through them (`opened`), so that
// the host still routes for nobody else. Where it is one already (Docker makes it so), nothing is changed.

import { readFile, writeFile } from 'node:fs/promises'
import { routesHere } from './host-state.ts'

export type Uplinks = {
  /** Open for our sake alone: to be kept and guarded. */
  opened: string[]
  /** Those of them that are not open yet. The guard must be in place first. */
  toOpen: string[]
}

/** What to open now, given what was opened before. */
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
    // The interface went away meanwhile: nothing to set.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Gives back what was opened, unless the host has become a router since. */
export async function closeUplinks(opened: string[]): Promise<void> {
  if (await isForwarding('all')) return
  for (const name of opened) await setForwarding(name, false)
}

/** Interfaces with a default route, or with the halves of one that some tunnels set. */
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
