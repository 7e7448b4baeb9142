// Each team's share of the pool (decisions/disks-and-logs.md): a qgroup above the disks and volumes of its machines, so
// that the kernel itself refuses writes beyond it, only in the team's own machines. Data shared between copies counts once.

import { readFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import { run, runOrThrow } from '../kernel/programs.ts'
import type { MachineSpec } from '../../engine.ts'
import type { Paths } from '../paths.ts'
import { makeShare } from './btrfs-requests.ts'
import { poolState } from './pool.ts'

const BTRFS_TIMEOUT_MS = 30_000

/** Options of `btrfs subvolume create` and `snapshot` for subvolumes of a group of machines. */
export function shareOptions(group: number): string[] {
  return ['-i', shareOf(group)]
}

/**
 * The same for a snapshot of a subvolume of the group. Kernels before 6.9 then stop their accounting, and with it
 * every limit: there a copy counts for its team from the engine's next start on, and has only its own limit until
 * then.
 */
export function copyOptions(group: number, kernel = release()): string[] {
  const [major = 0, minor = 0] = kernel.split('.').map(Number)
  return major > 6 || (major === 6 && minor >= 9) ? shareOptions(group) : []
}

/** Call it before anything of the group is created. */
export async function prepareShare(paths: Paths, group: number, bytes: number): Promise<void> {
  if (await makeShare(paths.pool, group, bytes)) return
  // Fails if it exists already; setting the limit shows whether it does.
  await run('btrfs', ['qgroup', 'create', shareOf(group), paths.pool], { timeoutMs: BTRFS_TIMEOUT_MS })
  await btrfs(['qgroup', 'limit', `${bytes}`, shareOf(group), paths.pool])
}

/** Call it at the engine's start: shares may have changed, and an earlier release made disks without any. */
export async function joinShares(paths: Paths, machines: MachineSpec[], bytes: number): Promise<void> {
  const groups = new Set(machines.map(({ networkGroup }) => networkGroup))
  for (const group of groups) await prepareShare(paths, group, bytes)
  const parents = parentsIn(await btrfs(['qgroup', 'show', '-p', '--raw', paths.pool]))
  for (const { id, networkGroup } of machines) {
    const { disk, volume } = paths.machine(id)
    for (const path of [disk, volume].filter((each) => existsSync(each))) {
      const own = `0/${(await btrfs(['inspect-internal', 'rootid', path])).trim()}`
      if (parents.get(own)?.includes(shareOf(networkGroup))) continue
      await btrfs(['qgroup', 'assign', '--no-rescan', own, shareOf(networkGroup), paths.pool])
    }
  }
  await countAnew(paths)
}

/** If the kernel has stopped its accounting, it counts again, while everything goes on. */
async function countAnew(paths: Paths): Promise<void> {
  const state = (await poolState(paths)) ?? ''
  const inconsistent = await readFile(join(state, 'qgroups/inconsistent'), 'utf8').catch(() => '0')
  // If it is counting already, it goes on.
  if (inconsistent.trim() !== '0')
    await run('btrfs', ['quota', 'rescan', paths.pool], { timeoutMs: BTRFS_TIMEOUT_MS })
}

/** Group of a qgroup and what lies in it: `0/257  4096  4096  1/3`. */
function parentsIn(table: string): Map<string, string[]> {
  const rows = table.split('\n').map((line) => line.trim().split(/\s+/))
  return new Map(
    rows.flatMap(([id = '', , , parents = '']) =>
      id.startsWith('0/') ? [[id, parents.split(',')] as const] : [],
    ),
  )
}

function shareOf(group: number): string {
  return `1/${group}`
}

async function btrfs(args: string[]): Promise<string> {
  return await runOrThrow('btrfs', args, { timeoutMs: BTRFS_TIMEOUT_MS })
}
