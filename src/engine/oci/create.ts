// Makes what a machine keeps for life: disk, volume, address. Nothing runs yet.

import type { MachineSpec, MachineStatus } from '../engine.ts'
import { EngineError } from '../errors.ts'
import { createDisk, writeEtc } from './disks.ts'
import { newMachine, statusOf, type Host } from './host.ts'
import { checkReserve } from './pool.ts'
import { saveRecord } from './record.ts'

export function createMachine(host: Host, spec: MachineSpec): Promise<MachineStatus> {
  return host.lock(spec.id, async () => {
    const existing = host.machines.get(spec.id)
    if (existing) return statusOf(existing)
    await checkReserve(host.paths, host.reserveGb)
    if (!(await host.images.find(spec.imageDigest))) {
      throw new EngineError('image_not_found', 'The image is no longer on this host: pull it again.')
    }
    const [attachment] = await Promise.all([
      host.network.attach({ machineId: spec.id, group: spec.networkGroup, address: null }),
      createDisk(host.paths, spec),
    ])
    const { address } = attachment
    const machine = newMachine(
      { spec, address, generation: 0, state: 'created', monitor: null, exit: null },
      attachment,
    )
    await saveRecord(host.paths, machine.record)
    host.machines.set(spec.id, machine)
    return statusOf(machine)
  })
}

/** Called at the first start, when the name is known and the disk has never been written by the machine. */
export async function prepareEtc(
  host: Host,
  id: string,
  names: { hostname: string; searchDomain: string; address: string },
): Promise<void> {
  const { hostname, searchDomain, address } = names
  await writeEtc(host.paths.machine(id), {
    hostname: `${hostname}\n`,
    hosts: `127.0.0.1 localhost\n${address} ${hostname}.${searchDomain} ${hostname}\n`,
    resolv: `nameserver ${host.gatewayAddress}\nsearch ${searchDomain}\n`,
  })
}
