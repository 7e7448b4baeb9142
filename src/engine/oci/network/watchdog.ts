// Checks repeatedly whether the host's network is unchanged, and repairs it: a flushed or altered table, a cut wire,
// a lost route or address, another firewall that reloaded. Until then a flush fails closed by itself (firewall-rules.ts), and
// the check is never later than the limit of reliability I3.

import type { Log } from '../../../lib/log.ts'
import type { Firewall } from './firewall.ts'
import { interfacesHere, routesHere } from './host-state.ts'
import type { Names } from './names.ts'
import type { OtherFirewalls } from './other-firewalls.ts'
import { repairSubnet } from './host-routes.ts'
import { restoreRoute, rewireSlot, type Slot } from './slots.ts'
import type { Traffic } from './traffic.ts'
import { isForwarding, setForwarding } from './uplinks.ts'

const LOOK_EVERY_MS = 2000

export type Watched = {
  names: Names
  firewall: Firewall
  traffic: Traffic
  otherFirewalls: OtherFirewalls
  syncUplinks: () => Promise<void>
  /** Continues making spare slots after a failure. */
  refill: () => void
  /** Returns the current slots of machines. */
  slotsInUse: () => Slot[]
  /** The wire of a machine is a new one, which has counted nothing yet. */
  onRewired: (slot: Slot) => void
  log: Log
}

export type Watchdog = { stop(): Promise<void> }

export function startWatchdog(watched: Watched): Watchdog {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> = Promise.resolve()

  const schedule = () => {
    timer = setTimeout(() => {
      looking = look(watched).finally(() => {
        if (!stopped) schedule()
      })
    }, LOOK_EVERY_MS)
    timer.unref()
  }
  schedule()

  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await looking
    },
  }
}

/** Each part is repaired separately: a failure must not prevent the others. */
async function look(watched: Watched): Promise<void> {
  const { names, firewall, traffic, log } = watched
  const parts = {
    subnet: async () => await repairSubnet(names),
    wires: async () => await mendWires(watched),
    forwarding: async () => await mendForwarding(names),
    tables: async () => await firewall.repair(),
    traffic: async () => await traffic.keep(),
    uplinks: async () => await watched.syncUplinks(),
    'spare slots': async () => watched.refill(),
    'other firewalls': async () => await watched.otherFirewalls.ensure(),
  }
  for (const [part, mend] of Object.entries(parts)) {
    try {
      if (await mend()) log.warn({ part }, 'network was disturbed and has been restored')
    } catch (error) {
      log.error({ err: error, part }, 'network cannot be restored')
    }
  }
}

async function mendWires({ names, slotsInUse, onRewired, firewall }: Watched): Promise<boolean> {
  const [interfaces, routes] = await Promise.all([interfacesHere(), routesHere()])
  const routed = new Set(routes.map((route) => `${route.interface} ${route.destination}`))
  let mended = false
  for (const slot of slotsInUse()) {
    if (!interfaces.has(slot.hostInterface)) {
      // A Linux stack inside continues on the new wire; gVisor's must be restarted.
      onRewired(slot)
      await rewireSlot(names, slot)
      // Its ingress chain was removed with the old wire.
      await firewall.load()
      mended = true
    } else if (!routed.has(`${slot.hostInterface} ${slot.address}/32`)) {
      await restoreRoute(names, slot)
      mended = true
    }
  }
  return mended
}

/** Turning the host's forwarding off turns it off on every wire at once: checking one is enough. */
async function mendForwarding(names: Names): Promise<boolean> {
  const wires = [...(await interfacesHere())].filter((name) => name.startsWith(names.interfacePrefix))
  if (wires[0] === undefined || (await isForwarding(wires[0]))) return false
  for (const name of wires) await setForwarding(name, true)
  return true
}
