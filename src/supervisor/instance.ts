// The identity of this instance of Berth on its host: the id in all its names there, and the subnet of its machines.
// Created once and kept in the data directory.

import { randomInt } from 'node:crypto'
import { access, mkdir, readdir, readFile } from 'node:fs/promises'
import { BlockList } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'
import { SECOND } from '../lib/clock.ts'
import { runOrThrow } from '../lib/process.ts'
import { readIfThere } from '../lib/read-if-there.ts'
import { writeDurably } from '../lib/write-durably.ts'

/** Where systemd-resolved runs, the first names only itself, and the second whom it asks. */
const RESOLVER_FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf']

const instanceSchema = z.object({
  id: z.string().regex(/^[a-z0-9]{4}$/),
  subnet: z.string().regex(/^10\.\d{1,3}\.0\.0\/16$/),
})

export type Instance = z.infer<typeof instanceSchema>

/** The directory for sockets and other files that do not survive a reboot. */
export function runDirOf(instance: Instance): string {
  return `/run/berth/${instance.id}`
}

export function postgresSocketDir(runDir: string): string {
  return `${runDir}/postgres`
}

/** Reads `<dataDir>/instance.json`, or creates it. Throws a sentence if it cannot be used. */
export async function loadInstance(dataDir: string): Promise<Instance> {
  const path = join(dataDir, 'instance.json')
  const text = await readIfThere(path)
  if (text !== null) return parseInstance(path, text)
  await refuseForgotten(dataDir, path)
  const instance = { id: await pickId(), subnet: await pickSubnet() }
  await mkdir(dataDir, { recursive: true })
  await keepInstance(dataDir, instance)
  return instance
}

/** Another subnet than before is only for a data directory on which Berth has never been started. */
export async function keepInstance(dataDir: string, instance: Instance): Promise<void> {
  await writeDurably(join(dataDir, 'instance.json'), `${JSON.stringify(instance)}\n`)
}

/**
 * Refuses a data directory that has machines but no instance file: under a new id, the old machines would belong to
 * no instance.
 */
async function refuseForgotten(dataDir: string, path: string): Promise<void> {
  if (await isUnused(dataDir)) return
  throw new Error(
    `${path} is missing, and ${dataDir} has machines or disks of an instance. Restore the file from a backup: it holds ` +
      `{"id":"<4 characters>","subnet":"10.x.0.0/16"}, and both are in the names and addresses of what still runs ` +
      `("nft list tables" shows berth_<id>). To start without them, set BERTH_DATA_DIR to an empty directory.`,
  )
}

/** Whether no Berth has been started on the data directory. */
export async function isUnused(dataDir: string): Promise<boolean> {
  const left = await Promise.all(
    ['machines', 'aside'].map((name) => readdir(join(dataDir, name)).catch(() => [])),
  )
  const hasPool = await access(join(dataDir, 'pool.btrfs')).then(
    () => true,
    () => false,
  )
  return left.flat().length === 0 && !hasPool
}

/** For commands next to a running instance: returns null before the first start. */
export async function findInstance(dataDir: string): Promise<Instance | null> {
  const path = join(dataDir, 'instance.json')
  const text = await readFile(path, 'utf8').catch(() => null)
  return text === null ? null : parseInstance(path, text)
}

/**
 * Returns the ids of units with files in the data directory. Disks are found if the pool is mounted, as it is while
 * machines run.
 */
export async function listMachinesAndDisks(dataDir: string): Promise<string[]> {
  const directories = ['machines', 'pool/disks', 'pool/volumes'].map((name) => join(dataDir, name))
  const names = await Promise.all(directories.map((path) => readdir(path).catch(() => [])))
  return [...new Set(names.flat())]
}

function parseInstance(path: string, text: string): Instance {
  try {
    return instanceSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw new Error(
      `${path} is damaged. It holds {"id":"<4 characters>","subnet":"10.x.0.0/16"}: restore it from a backup.`,
      { cause },
    )
  }
}

async function pickId(): Promise<string> {
  for (;;) {
    const id = Array.from({ length: 4 }, () => randomInt(36).toString(36)).join('')
    // Another instance with its own data directory may have drawn the same id.
    const taken = await access(`/run/berth/${id}`).then(
      () => true,
      () => false,
    )
    if (!taken) return id
  }
}

async function pickSubnet(): Promise<string> {
  const free = await findFreeSubnets()
  const picked = free[randomInt(Math.max(free.length, 1))]
  if (picked === undefined) {
    throw new Error('Every subnet 10.x.0.0/16 is routed on this host; Berth needs one that is not.')
  }
  return picked
}

/** Those that nothing on this host uses. */
export async function findFreeSubnets(): Promise<string[]> {
  const options = { timeoutMs: 10 * SECOND }
  const routes = JSON.parse(await runOrThrow('ip', ['-json', '-4', 'route', 'show', 'table', 'all'], options))
  const links = JSON.parse(await runOrThrow('ip', ['-json', '-4', 'address'], options))
  return freeSubnets([...destinations(routes), ...addresses(links), ...(await nameservers())])
}

const routesSchema = z.array(z.object({ dst: z.string() }))
const linksSchema = z.array(z.object({ addr_info: z.array(z.object({ local: z.string().optional() })) }))

function destinations(routes: unknown): string[] {
  return routesSchema.parse(routes).map((route) => route.dst)
}

function addresses(links: unknown): string[] {
  return linksSchema.parse(links).flatMap((link) => link.addr_info.flatMap(({ local }) => local ?? []))
}

/** The host's own resolvers, which may be reached by the default route alone. */
async function nameservers(): Promise<string[]> {
  const files = await Promise.all(RESOLVER_FILES.map((path) => readFile(path, 'utf8').catch(() => '')))
  return files.flatMap(nameserversIn)
}

/** Returns the IPv4 addresses that a resolv.conf names. */
export function nameserversIn(file: string): string[] {
  return [...file.matchAll(/^[ \t]*nameserver[ \t]+(\d{1,3}(?:\.\d{1,3}){3})\s*$/gm)].map(
    ([, address = '']) => address,
  )
}

/**
 * Returns every `10.x.0.0/16` that overlaps none of these destinations, as `ip` writes them: `10.1.2.0/24`, an
 * address, or `default`, which overlaps all and is ignored.
 */
export function freeSubnets(inUse: string[]): string[] {
  const networks = inUse.filter((network) => /^\d/.test(network) && !network.startsWith('0.0.0.0/'))
  return Array.from({ length: 256 }, (_, x) => `10.${x}.0.0/16`).filter(
    (subnet) => !networks.some((network) => overlap(subnet, network)),
  )
}

/** Two networks overlap if one contains the other's first address. */
function overlap(a: string, b: string): boolean {
  return holds(a, b) || holds(b, a)
}

function holds(network: string, other: string): boolean {
  const [address = '', bits = '32'] = network.split('/')
  const list = new BlockList()
  list.addSubnet(address, Number(bits))
  return list.check(other.split('/')[0] ?? '')
}
