// The mount points of a runtime in a machine's root. Between two runs a unit can leave links on the way to each, and
// runtimes follow them: with a volume over /dev, for example, they take files of the unit for devices. So every mount
// point is resolved before a start, created if missing, and the runtime gets its real path. Nothing of the unit runs
// meanwhile, so it cannot change.

import type { MachineSpec } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { traitsOf } from '../traits.ts'
import { inTheWay } from './in-the-way.ts'
import { makeInTree, pathInTree } from '../kernel/unit-tree.ts'

export type MountPoints = {
  /** Of the static helper. */
  helper: string
  volume: string | null
  /** The root's own /tmp, on the host, if it must be mounted to be kept (decisions/machines.md). */
  tmp: string | null
}

/** The path of the static helper in a machine. */
export const HELPER_DIR = '/run/berth'

/** The kernel's, in a machine as anywhere. */
const kernelTrees = ['/proc', '/sys', '/dev']

export async function prepareMountPoints(
  rootfs: string,
  spec: Pick<MachineSpec, 'isolation' | 'volume'>,
): Promise<MountPoints> {
  const { volume } = spec
  const { replacesTmp } = traitsOf(spec)
  for (const tree of kernelTrees) {
    if ((await lookUp(rootfs, tree)) !== tree) throw leadsAway(tree)
  }
  const helper = await lookUp(rootfs, HELPER_DIR)
  if (isReserved(helper)) throw leadsAway(HELPER_DIR)
  const mount = volume && (await lookUp(rootfs, volume.mount))
  if (volume && mount !== null && (isReserved(mount) || lieTogether(mount, helper))) {
    throw leadsAway(volume.mount)
  }
  const tmp = replacesTmp && mount !== '/tmp' ? await findTmp(rootfs) : null
  return { helper, volume: mount, tmp }
}

async function lookUp(rootfs: string, path: string): Promise<string> {
  try {
    return await makeInTree(rootfs, path)
  } catch (cause) {
    throw inTheWay(`The directory ${path} cannot be made in the machine`, cause)
  }
}

/** Returns null if the machine has replaced it. */
async function findTmp(rootfs: string): Promise<string | null> {
  const real = await makeInTree(rootfs, '/tmp', 0o1777).catch(() => null)
  return real === '/tmp' ? pathInTree(rootfs, real) : null
}

/** Whether a mount there would hide what the kernel or the engine has put into the machine. */
function isReserved(path: string): boolean {
  return path === '/' || path === '/etc' || kernelTrees.some((tree) => isWithin(path, tree))
}

function lieTogether(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one)
}

function isWithin(path: string, tree: string): boolean {
  return path === tree || path.startsWith(`${tree}/`)
}

/** The error does not repeat where a link leads, because a unit chooses that text. */
function leadsAway(path: string): EngineError {
  const kept = ['/etc', HELPER_DIR, ...kernelTrees].join(', ')
  return new EngineError(
    'start_refused',
    `Nothing can be mounted at ${path}: a link in the machine leads from there to one of ${kept}, or to what they lie in.`,
  )
}
