// What tells a machine who it is, below /etc: put there before its first start, its own from then on.

import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { ProcessFailed } from '../../lib/process.ts'
import type { RunSpec } from '../engine.ts'
import { runInRoot } from './boot-files.ts'
import type { Host, Machine } from './host.ts'
import type { StoredImage } from './images/store.ts'
import type { RunPaths } from './paths.ts'
import { detachMount, mountOverlay } from './syscalls.ts'

type FirstRun = { machine: Machine; run: RunSpec; paths: RunPaths; image: StoredImage }

/** Each of them replaces whatever has its name, links included, but for a directory: that is left. */
const WRITE = `
umask 022
cd /etc || exit
put() {
  rm -f "$1" && printf %s "$2" > "$1" || failed=1
}
while [ $# -gt 1 ]; do
  put "$1" "$2"
  shift 2
done
exit $failed`

export async function prepareEtc(host: Host, { machine, run, paths, image }: FirstRun): Promise<void> {
  const files = etcFiles(host.gatewayAddress, machine.record.address, run)
  if (machine.record.forkGeneration === 0) await writeUpper(host, machine, files)
  else await writeMerged(host, machine, paths, image, files)
}

function etcFiles(gateway: string, address: string, { hostname, searchDomain }: RunSpec): [string, string][] {
  return [
    ['hostname', `${hostname}\n`],
    ['hosts', `127.0.0.1 localhost\n${address} ${hostname}.${searchDomain} ${hostname}\n`],
    ['resolv.conf', `nameserver ${gateway}\nsearch ${searchDomain}\n`],
    ['machine-id', `${randomUUID().replaceAll('-', '')}\n`],
  ]
}

/**
 * Into the upper layer of a disk that has never run: nothing there is hostile yet, so the host may write. A
 * directory of the upper layer hides a link of that name in the image.
 */
async function writeUpper(host: Host, { record }: Machine, files: [string, string][]): Promise<void> {
  const directory = `${host.paths.machine(record.spec.id).upper}/etc`
  await mkdir(directory, { recursive: true, mode: 0o755 })
  await Promise.all(files.map(([name, content]) => writeFile(`${directory}/${name}`, content)))
}

/**
 * Over what the machine it is a copy of has left there, which may be anything: by the helper, jailed in the root
 * (boot-files.ts). Where that machine made it impossible, its copy starts with what it finds, as that one would.
 */
async function writeMerged(
  host: Host,
  { record, doom }: Machine,
  { rootfs }: RunPaths,
  image: StoredImage,
  files: [string, string][],
): Promise<void> {
  const disk = host.paths.machine(record.spec.id)
  await mkdir(rootfs, { recursive: true })
  detachMount(rootfs)
  mountOverlay(rootfs, { lower: image.rootfs, upper: disk.upper, work: disk.work })
  const tool = ['sh', '-c', WRITE, 'etc', ...files.flat()]
  try {
    await runInRoot(rootfs, host.paths.helper, tool, Buffer.alloc(0), doom.signal)
  } catch (error) {
    if (!(error instanceof ProcessFailed)) throw error
    host.log.warn({ err: error, machine: record.spec.id }, 'a copy keeps some of its source below /etc')
  } finally {
    detachMount(rootfs)
  }
}
