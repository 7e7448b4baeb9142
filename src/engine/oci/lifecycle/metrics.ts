// The resource usage of a machine: of its run from the control group and the host's end of its network interface, of
// its disks from the pool's accounting.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DiskMetrics, MachineMetrics, RunMetrics } from '../../metrics.ts'
import { type EngineContext, getMachine, type Machine } from '../machine/context.ts'
import { readGroupUsage } from '../kernel/group-usage.ts'
import { subvolumeNumber } from '../storage/subvolumes.ts'

const GB = 1024 ** 3

export async function readMetrics(host: EngineContext, id: string): Promise<MachineMetrics> {
  const machine = getMachine(host, id)
  const { spec } = machine.record
  const { disk, volume } = host.paths.machine(id)
  const [ofDisk, ofVolume, run] = await Promise.all([
    readDisk(host, disk, spec.size.diskGb),
    spec.volume ? readDisk(host, volume, spec.volume.gb) : null,
    readRun(host, machine),
  ])
  return { at: host.clock.now(), run, disk: ofDisk, volume: ofVolume }
}

async function readRun(host: EngineContext, { record }: Machine): Promise<RunMetrics | null> {
  const { state, generation, spec } = record
  if (state !== 'running') return null
  const usage = readGroupUsage(host.cgroups, host.paths.run(spec.id, generation).container, host.ioDevice)
  const wire = host.network.interfaceOf(spec.id)
  const network = wire === null ? null : await readWire(wire)
  // It may have ended meanwhile, and then its group was counted half.
  return record.state === 'running' && record.generation === generation
    ? { generation, ...usage, network }
    : null
}

/** What the host receives, the machine has sent. */
async function readWire(name: string): Promise<RunMetrics['network']> {
  const read = async (count: string) =>
    Number(await readFile(`/sys/class/net/${name}/statistics/${count}`, 'utf8'))
  try {
    const [receivedBytes, sentBytes] = await Promise.all([read('tx_bytes'), read('rx_bytes')])
    return { receivedBytes, sentBytes }
  } catch {
    return await readWireInList(name)
  }
}

/** For an engine whose /sys is of another network namespace than its own, as in some containers. */
async function readWireInList(name: string): Promise<RunMetrics['network']> {
  const list = await readFile('/proc/self/net/dev', 'utf8').catch(() => '')
  const line = list.split('\n').find((each) => each.trimStart().startsWith(`${name}:`))
  // It was removed with its run.
  if (line === undefined) return null
  const counts = line
    .slice(line.indexOf(':') + 1)
    .trim()
    .split(/\s+/)
  return { receivedBytes: Number(counts[8]), sentBytes: Number(counts[0]) }
}

/** The kernel counts as it writes: what is new is there within half a minute. */
async function readDisk({ poolState }: EngineContext, path: string, gb: number): Promise<DiskMetrics> {
  const limitBytes = gb * GB
  if (poolState === null) return { usedBytes: null, limitBytes }
  try {
    const account = join(poolState, 'qgroups', `0_${subvolumeNumber(path)}`, 'referenced')
    return { usedBytes: Number(await readFile(account, 'utf8')), limitBytes }
  } catch {
    // The disk is just being made or removed, or the host has older accounts without files.
    return { usedBytes: null, limitBytes }
  }
}
