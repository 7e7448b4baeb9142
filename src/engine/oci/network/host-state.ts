// The current state of the host's network, read from /proc without starting a process.

import { readdir, readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { NAMESPACE_DIR } from './names.ts'

export type Route = {
  /** Null for a route that discards packets. */
  interface: string | null
  /** `10.1.2.3/32`, `0.0.0.0/0` */
  destination: string
}

/** Packets, among the numbers of a line of /proc/net/dev. */
const [RECEIVED_AT, SENT_AT] = [1, 9] as const

/** Interfaces of the network namespace this process is in. */
export async function interfacesHere(): Promise<Set<string>> {
  const text = await readFile('/proc/net/dev', 'utf8')
  const names = text.split('\n').flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? [])
  return new Set(names)
}

/** Whether any packet has passed an interface since it was made; also true of one that is gone. */
export async function hasCarried(name: string): Promise<boolean> {
  const text = await readFile('/proc/net/dev', 'utf8')
  const line = text.split('\n').find((each) => each.trimStart().startsWith(`${name}:`))
  const counts = line?.split(':')[1]?.trim().split(/\s+/)
  return counts?.[RECEIVED_AT] !== '0' || counts[SENT_AT] !== '0'
}

/** IPv4 routes of the main table. */
export async function routesHere(): Promise<Route[]> {
  const text = await readFile('/proc/net/route', 'utf8')
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [name, destination, , , , , , mask] = line.split('\t')
      if (!name || !destination || !mask) return []
      return [
        {
          interface: name === '*' ? null : name,
          destination: `${addressOf(destination)}/${prefixOf(mask)}`,
        },
      ]
    })
}

export function hasAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((list) => list?.some((entry) => entry.address === address))
}

/** Named network namespaces that start with `prefix`. */
export async function namespacesHere(prefix: string): Promise<string[]> {
  try {
    return (await readdir(NAMESPACE_DIR)).filter((name) => name.startsWith(prefix))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** The kernel prints addresses as a number in its own (little-endian) byte order. */
function addressOf(hex: string): string {
  return (hex.match(/../g) ?? [])
    .toReversed()
    .map((byte) => Number.parseInt(byte, 16))
    .join('.')
}

function prefixOf(hex: string): number {
  return Number.parseInt(hex, 16).toString(2).replaceAll('0', '').length
}
