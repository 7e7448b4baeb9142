// The files below /etc that identify a machine: written before its first start, and its own from then on.

import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import type { RunSpec } from '../../engine.ts'
import type { EngineContext, Machine } from './context.ts'
import type { StoredImage } from '../images/store.ts'
import type { RunPaths } from '../paths.ts'
import { detachMount, mountOverlay } from '../kernel/syscalls.ts'
import { rewriteInTree, writeInTree } from '../kernel/unit-tree.ts'

const MACHINE_ID = 'machine-id'

type FirstRun = { machine: Machine; run: RunSpec; paths: RunPaths; image: StoredImage }

export async function prepareEtc(
  host: EngineContext,
  { machine, run, paths, image }: FirstRun,
): Promise<void> {
  const files = etcFiles(host.gatewayAddress, machine.record.address, run)
  if (machine.record.forkGeneration === 0)
    await writeAll(host.paths.machine(machine.record.spec.id).upper, files)
  else await writeMerged(host, machine, paths, image, files)
}

/** `root`: the root of a machine in which nothing of it runs yet, or its upper layer before it is mounted. */
export async function writeEtc(
  host: EngineContext,
  root: string,
  { address, run }: { address: string; run: RunSpec },
): Promise<void> {
  await writeAll(root, etcFiles(host.gatewayAddress, address, run))
}

/**
 * The same for a root where nothing has run since `writeEtc`: what differs is written into those files. Its machine-id is
 * its own already.
 */
export async function nameInEtc(
  host: EngineContext,
  root: string,
  { address, run }: { address: string; run: RunSpec },
): Promise<void> {
  const files = etcFiles(host.gatewayAddress, address, run).filter(([name]) => name !== MACHINE_ID)
  await Promise.all(files.map(([name, content]) => rewriteInTree(root, `/etc/${name}`, content)))
}

/** What a machine has below /etc that says who it is, by path. */
export function ownFiles(host: EngineContext, address: string, run: RunSpec): [string, string][] {
  return etcFiles(host.gatewayAddress, address, run).map(([name, content]) => [`/etc/${name}`, content])
}

function etcFiles(gateway: string, address: string, { hostname, searchDomain }: RunSpec): [string, string][] {
  return [
    ['hostname', `${hostname}\n`],
    ['hosts', `127.0.0.1 localhost\n${address} ${hostname}.${searchDomain} ${hostname}\n`],
    ['resolv.conf', `nameserver ${gateway}\nsearch ${searchDomain}\n`],
    [MACHINE_ID, `${randomUUID().replaceAll('-', '')}\n`],
  ]
}

/**
 * Writes into the upper layer of a disk. A directory of the upper layer hides a link of that name in the image. A
 * failed first run may have written there before.
 */
async function writeAll(root: string, files: [string, string][]): Promise<void> {
  for (const [name, content] of files) await writeInTree(root, `/etc/${name}`, content)
}

/**
 * Overwrites what the source of a copy has left there, which may be anything. If that is impossible, the copy starts
 * with what it finds, as its source would.
 */
async function writeMerged(
  host: EngineContext,
  { record }: Machine,
  { rootfs }: RunPaths,
  image: StoredImage,
  files: [string, string][],
): Promise<void> {
  const disk = host.paths.machine(record.spec.id)
  await mkdir(rootfs, { recursive: true })
  detachMount(rootfs)
  mountOverlay(rootfs, { lower: image.rootfs, upper: disk.upper, work: disk.work })
  try {
    for (const [name, content] of files) {
      await writeInTree(rootfs, `/etc/${name}`, content).catch((error: unknown) =>
        host.log.warn(
          { err: error, machine: record.spec.id, name },
          'a copy keeps a file of its source in /etc',
        ),
      )
    }
  } finally {
    detachMount(rootfs)
  }
}
