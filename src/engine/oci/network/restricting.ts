// Applies what machines may reach: first to the firewall, then to the egress process and the resolver, last to open
// connections. A machine without restrictions costs nothing here.

import { isDeepStrictEqual } from 'node:util'
import { isPublicAddress } from '../../../lib/address-ranges.ts'
import { isWithin } from '../../../lib/egress/rules.ts'
import type { Log } from '../../../lib/log.ts'
import type { MachineSeen } from '../../../lib/egress/seen.ts'
import type { MachineEgress } from '../../egress.ts'
import type { Connections, Flow } from './connections.ts'
import { decidesByName, type LinkSockets, openEgressLink, type Restricted as Listed } from './egress-link.ts'
import type { Firewall } from './firewall.ts'
import { allowsDirect, pinsFor } from './restrictions.ts'
import { createUnserved } from './unserved.ts'
import type { EgressPorts } from './firewall-rules.ts'

export type EgressOptions = {
  ports: EgressPorts
  /** The group of the egress process. */
  gid: number | null
  /** Null: there is no egress process, so restricted machines reach no name. */
  sockets: LinkSockets | null
  /** Called, again and again, while machines need the egress process and it is not there. */
  onNeeded: () => void
}

/** `isNew`: the machine has not run, so nothing of it can be open. `failed`: what was wanted may not be in force. */
export type Restricted = { egress: MachineEgress | null; isNew: boolean; failed?: boolean }

type Machine = { machineId: string; address: string; group: number; restricted: Restricted }

export type Restricting = {
  restrict(machine: Machine, egress: MachineEgress | null): Promise<void>
  /** The certificate that units of a network group trust for the hosts of their secrets; null before it is known. */
  authorityOf(group: number): string | null
  /** The run of the machine with this address has ended. */
  ended(address: string): void
  close(): Promise<void>
}

const NEEDED_EVERY_MS = 3000

export async function openRestricting(
  { sockets, onNeeded }: EgressOptions,
  firewall: Firewall,
  connections: Pick<Connections, 'cut'>,
  log: Log,
  restricted: () => Listed[],
  onSeen: (lines: MachineSeen[]) => void,
): Promise<Restricting> {
  const pin = async (address: string, name: string, addresses: string[]) => {
    const egress = firewall.restrictionOf(address)?.egress
    if (!egress) return false
    await firewall.pin(address, pinsFor(name, addresses.filter(isPublicAddress), egress))
    return true
  }
  const link = sockets === null ? null : await openEgressLink({ sockets, restricted, pin, onSeen, log })
  const unserved = createUnserved(() => new Date())
  const askForProcess = () => {
    const isMissing = link?.isServed() === false && restricted().some(({ egress }) => decidesByName(egress))
    if (isMissing) onNeeded()
    const lines = unserved.look(!isMissing, restricted)
    if (lines.length > 0) onSeen(lines)
  }
  const authorityOf = (group: number) => link?.authorityOf(group) ?? null
  askForProcess()
  const asking = setInterval(askForProcess, NEEDED_EVERY_MS)
  asking.unref()

  return {
    async restrict({ machineId: machine, address, group, restricted: state }, egress) {
      const before = state.egress
      const { isNew } = state
      state.isNew = false
      if (isDeepStrictEqual(before, egress) && !state.failed) return
      state.egress = egress
      state.failed = true
      await firewall.restrict(address, egress)
      if (decidesByName(egress) && link?.isServed() === false) {
        onNeeded()
        await link.untilServed()
      }
      await link?.tell({ address, machine, group, egress })
      if (egress !== null && egress.secrets.length > 0 && authorityOf(group) === null)
        throw new Error('there is no egress process that puts secrets into requests')
      if (egress !== null && !isNew)
        await connections.cut(address, staysOpen(firewall, address, before, egress))
      state.failed = false
    },

    authorityOf,

    ended: (address) => {
      if (firewall.restrictionOf(address)) link?.tellEnded(address)
    },

    async close() {
      clearInterval(asking)
      await link?.close()
    },
  }
}

/** What goes through the egress process or the resolver is cut by those. */
function staysOpen(
  firewall: Firewall,
  address: string,
  before: MachineEgress | null,
  egress: MachineEgress,
): (flow: Flow) => boolean {
  const pins = firewall.restrictionOf(address)?.pins ?? []
  const mayStay = before !== null && isWithin(before, egress) && before.stack === egress.stack
  return (flow) => {
    if (mayStay || flow.redirected) return true
    // Siblings have private addresses, and it is the firewall that knows which of them it may reach.
    if (!isPublicAddress(flow.address)) return egress.siblings === 'team'
    return allowsDirect({ egress, pins }, flow)
  }
}
