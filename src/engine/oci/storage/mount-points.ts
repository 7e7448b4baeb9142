// Where a runtime mounts in the root of a machine. Between two runs a unit can put links on the way to each place, and
// runtimes follow them: with a volume over /dev, for one, they take files of the unit's for devices. So every place is
// looked up before a start, made where it is missing, and the runtime is told where it really lies. Nothing of the
// unit runs meanwhile, so nothing moves it.

import type { MachineSpec } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { makeInTree, pathInTree } from './unit-tree.ts'

export type MountPoints = {
  /** Of the static helper. */
  helper: string
  volume: string | null
  /** The root's own /tmp, on the host, where it must be mounted to be kept (decision 0025). */
  tmp: string | null
}

/** Where the static helper is seen inside a machine. */
export const HELPER_DIR = '/run/berth'

/** The kernel's, in a machine as anywhere. */
const kernelTrees = ['/proc', '/sys', '/dev']

export async function prepareMountPoints(
  rootfs: string,
  { isolation, volume }: Pick<MachineSpec, 'isolation' | 'volume'>,
): Promise<MountPoints> {
  for (const tree of kernelTrees) {
    if ((await lookUp(rootfs, tree)) !== tree) throw leadsAway(tree)
  }
  const helper = await lookUp(rootfs, HELPER_DIR)
  if (isReserved(helper)) throw leadsAway(HELPER_DIR)
  const mount = volume && (await lookUp(rootfs, volume.mount))
  if (volume && mount !== null && (isReserved(mount) || lieTogether(mount, helper))) {
    throw leadsAway(volume.mount)
  }
  const tmp = isolation === 'gvisor' && mount !== '/tmp' ? await findTmp(rootfs) : null
  return { helper, volume: mount, tmp }
}

async function lookUp(rootfs: string, path: string): Promise<string> {
  try {
    return await makeInTree(rootfs, path)
  } catch (cause) {
    throw new EngineError(
      'start_failed',
      `The directory ${path} cannot be made in the machine: its disk is full, or a file or a link to nowhere is in the way.`,
      { cause },
    )
  }
}

/** Null where the machine has put something else in its place. */
async function findTmp(rootfs: string): Promise<string | null> {
  const real = await makeInTree(rootfs, '/tmp', 0o1777).catch(() => null)
  return real === '/tmp' ? pathInTree(rootfs, real) : null
}

/** Whether what is mounted there would hide what the kernel or the engine has put into the machine. */
function isReserved(path: string): boolean {
  return path === '/' || path === '/etc' || kernelTrees.some((tree) => isWithin(path, tree))
}

function lieTogether(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one)
}

function isWithin(path: string, tree: string): boolean {
  return path === tree || path.startsWith(`${tree}/`)
}

/** What is said of a place leaves out where it leads: that is as long, and reads as, a unit likes. */
function leadsAway(path: string): EngineError {
  const kept = ['/etc', HELPER_DIR, ...kernelTrees].join(', ')
  return new EngineError(
    'start_failed',
    `Nothing can be mounted at ${path}: a link in the machine leads from there to one of ${kept}, or to what they lie in.`,
  )
}
