// A real engine on another machine: in a process of its own and a network namespace of its own, with its own disks, and
// called by TLS.

import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import { askEngineEpoch, connectEngine } from '../../src/engine/ipc/client.ts'
import type { OciEngine, OciOptions } from '../../src/engine/oci/oci-engine.ts'
import { type FleetIdentity, parseIdentity } from '../../src/lib/fleet-identity.ts'
import { openEngineProcess } from '../engine/engine-process.ts'
import { type HostEngine, openHostEngine } from '../engine/host-engine.ts'
import { endProcesses } from './power-cut.ts'
import { nameWire, type Wire } from './wire.ts'

/** Each has a network of its own. */
const PORT = 7075

type Machine = { name: string; wire: Wire; identity: FleetIdentity; aheadMs: number }

export type FarHost = {
  name: string
  wire: Wire
  /** Its disks and its engine, which is asked past the server. */
  host: HostEngine
  /** As in the row of a host. */
  address: string
  /** Ends the engine and all that runs in its machines, at once. `host.reopen` starts it again. */
  powerOff: () => Promise<void>
  machine: Machine
  /** With the power off, its disks come into another machine. */
  moveTo: (machine: Machine) => void
  /** Takes it off the host. */
  close: () => Promise<void>
}

type Given = {
  name: string
  /** Of the fleet that it belongs to. */
  fleetDir: string
  /** Of its wire. */
  index: number
  options?: Partial<OciOptions>
  /** By how much its clock is ahead. */
  aheadMs?: number
}

export async function openFarHost({ name, fleetDir, index, options, aheadMs = 0 }: Given): Promise<FarHost> {
  const wire = nameWire(index)
  const own: Machine = { name, wire, identity: await identityOf(fleetDir, 'engine', name), aheadMs }
  let machine = own
  let pid: number | null = null
  const open = async (given: OciOptions): Promise<OciEngine> => {
    const { wire: at, identity, aheadMs: ahead } = machine
    const tls = { host: '0.0.0.0', port: PORT, identity }
    const onStarted = (started: number) => void (pid = started)
    const where = { network: at.network, tls, aheadMs: ahead, onStarted }
    return atNewestEpoch(await openEngineProcess(given, given.runDir, where), `${given.runDir}/engine.sock`)
  }
  await wire.open()
  try {
    const host = await openHostEngine(options, open, wire.network)
    return {
      name,
      wire,
      host,
      address: `${wire.address}:${PORT}`,
      machine: own,
      moveTo: (other) => {
        machine = other
      },
      powerOff: async () => {
        if (pid !== null) kill(pid)
        await endProcesses(host.instance, host.options.dataDir)
      },
      close: async () => {
        try {
          await host.close()
        } finally {
          await wire.close()
        }
      },
    }
  } catch (error) {
    await wire.close()
    throw error
  }
}

/** Two hosts are powered off, and come back each with the disks of the other one. */
export async function swapDisks(one: FarHost, other: FarHost): Promise<void> {
  await comeBack(one, other, [other.machine, one.machine])
}

/** The opposite. */
export async function swapBack(one: FarHost, other: FarHost): Promise<void> {
  await comeBack(one, other, [one.machine, other.machine])
}

async function comeBack(one: FarHost, other: FarHost, machines: [Machine, Machine]): Promise<void> {
  await Promise.all([one.powerOff(), other.powerOff()])
  one.moveTo(machines[0])
  other.moveTo(machines[1])
  await Promise.all([one.host.reopen(), other.host.reopen()])
}

export async function identityOf(
  fleetDir: string,
  role: 'server' | 'engine',
  host: string,
): Promise<FleetIdentity> {
  return parseIdentity(await issueIdentity(fleetDir, { role, host }, new Date()))
}

/** Calls of a test are not refused because of a server that has called the engine, and take nothing from it. */
function atNewestEpoch(engine: OciEngine, socketPath: string): OciEngine {
  const address = { socketPath }
  return new Proxy(engine, {
    get: (target, name: keyof OciEngine | 'then') => {
      // Asked of what an async function returns.
      if (name === 'then') return undefined
      if (name === 'close') return async () => await target.close()
      return async (...args: unknown[]) => {
        // It has seen none before its first call.
        const epoch = Math.max(1, await askEngineEpoch(address))
        const asked = connectEngine({ address, epoch, onLost: () => {} })
        return await (asked[name] as (...given: unknown[]) => unknown)(...args)
      }
    },
  })
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
