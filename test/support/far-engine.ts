// A real engine on another machine: in a process of its own and a network namespace of its own, with its own disks, and
// called by TLS alone.

import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import type { OciOptions } from '../../src/engine/oci/oci-engine.ts'
import { type FleetIdentity, parseIdentity } from '../../src/lib/fleet-identity.ts'
import { openEngineProcess } from '../engine/engine-process.ts'
import { type HostEngine, openHostEngine } from '../engine/host-engine.ts'
import { nameWire, type Wire } from './wire.ts'

/** Each has a network of its own. */
const PORT = 7075

export type FarHost = {
  name: string
  wire: Wire
  host: HostEngine
  /** As in the row of a host. */
  address: string
  /** Takes it off the host. */
  close: () => Promise<void>
}

type Machine = {
  name: string
  /** Of the fleet that it belongs to. */
  fleetDir: string
  /** Of its wire. */
  index: number
  options?: Partial<OciOptions>
  aheadMs?: number
}

export async function openFarHost({
  name,
  fleetDir,
  index,
  options,
  aheadMs = 0,
}: Machine): Promise<FarHost> {
  const identity = await identityOf(fleetDir, 'engine', name)
  const wire = nameWire(index)
  await wire.open()
  try {
    const tls = { host: '0.0.0.0', port: PORT, identity }
    const open = async (given: OciOptions) =>
      await openEngineProcess(given, given.runDir, { network: wire.network, tls, aheadMs })
    const host = await openHostEngine(options, open, wire.network)
    const close = async () => {
      try {
        await host.close()
      } finally {
        await wire.close()
      }
    }
    return { name, wire, host, address: `${wire.address}:${PORT}`, close }
  } catch (error) {
    await wire.close()
    throw error
  }
}

export async function identityOf(
  fleetDir: string,
  role: 'server' | 'engine',
  host: string,
): Promise<FleetIdentity> {
  return parseIdentity(await issueIdentity(fleetDir, { role, host }, new Date()))
}
