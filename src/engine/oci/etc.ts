// The network's files below /etc, put there before a machine's first start. They are its own from then on.

import type { RunSpec } from '../engine.ts'
import { writeEtc } from './disks.ts'
import type { Host } from './host.ts'
import type { MachineRecord } from './record.ts'

/** The disk has never been written by the machine: nothing on it is hostile yet. */
export async function prepareEtc(host: Host, { spec, address }: MachineRecord, run: RunSpec): Promise<void> {
  const { hostname, searchDomain } = run
  await writeEtc(host.paths.machine(spec.id), {
    hostname: `${hostname}\n`,
    hosts: `127.0.0.1 localhost\n${address} ${hostname}.${searchDomain} ${hostname}\n`,
    resolv: `nameserver ${host.gatewayAddress}\nsearch ${searchDomain}\n`,
  })
}
