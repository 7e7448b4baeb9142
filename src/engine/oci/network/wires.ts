// The wires of machines: slots (slots.ts) that stand ready with their rules (pool.ts), are taken by a machine with its
// address, and go when its run ends.

import type { Log } from '../../../lib/log.ts'
import type { createAddresses } from './addresses.ts'
import type { Firewall } from './firewall.ts'
import { hasCarried } from './host-state.ts'
import type { Names } from './names.ts'
import { createPool } from './pool.ts'
import { buildSlots, readdressSlot, removeSlots, type Slot, slotOf } from './slots.ts'

export type Wires = {
  /** Slots are numbered from here on, above those that a recovery has found. */
  numberFrom(first: number): void
  refill(): void
  /** Returns a slot of this group: with the address, or with one that is free. */
  take(machine: { group: number; address: string | null }): Promise<Slot>
  /** Closes a slot, and removes it soon. Returns whether a packet has passed it. */
  remove(slot: Slot): Promise<boolean>
  /** The same later, for one that no machine waits for. */
  removeLater(slot: Slot): void
  /** Removes what stands ready. With `removeAll` everything will be removed anyway. */
  close(options: { removeAll: boolean }): Promise<void>
}

type Around = {
  names: Names
  firewall: Firewall
  addresses: ReturnType<typeof createAddresses>
  log: Log
}

export function createWires({ names, firewall, addresses, log }: Around): Wires {
  let nextNumber = 1
  const removing = new Set<Promise<void>>()

  const pool = createPool(async (count) => {
    const slots = Array.from({ length: count }, () => slotOf(names, nextNumber++, addresses.allot()))
    try {
      await buildSlots(names, slots)
      await firewall.openPorts(slots.map((slot) => slot.hostInterface))
    } catch (error) {
      await discard(slots)
      for (const slot of slots) addresses.free(slot.address)
      throw error
    }
    return slots
  }, log)

  async function discard(slots: Slot[]): Promise<void> {
    await firewall.closePorts(slots.map((slot) => slot.hostInterface))
    await removeSlots(slots)
  }

  function removeLater(slot: Slot, remove: (slots: Slot[]) => Promise<void> = discard): void {
    const done: Promise<void> = remove([slot])
      .catch((error: unknown) =>
        log.warn({ err: error }, 'a used network slot stays until the next recovery'),
      )
      .finally(() => removing.delete(done))
    removing.add(done)
  }

  return {
    numberFrom: (first) => {
      nextNumber = first
    },
    refill: () => pool.refill(),
    removeLater: (slot) => removeLater(slot),

    async take({ group, address }) {
      const prepared = await pool.take()
      const slot = { ...prepared, address: address ?? prepared.address }
      try {
        await Promise.all([
          firewall.admit({ port: slot.hostInterface, address: slot.address, group }),
          address === null ? undefined : readdressSlot(names, prepared, address),
        ])
        if (address !== null) addresses.free(prepared.address)
        return slot
      } catch (error) {
        removeLater(prepared)
        if (address === null) await firewall.forget(prepared.address)
        addresses.free(prepared.address)
        throw error
      }
    },

    async remove(slot) {
      // From then on nothing of the machine gets here. What is sent to it has no answer, and begins nothing that is established.
      await firewall.closePorts([slot.hostInterface])
      const carried = await hasCarried(slot.hostInterface)
      // The kernel takes 20 ms and more, which nobody needs to wait for.
      removeLater(slot, removeSlots)
      return carried
    },

    async close({ removeAll }) {
      const unused = await pool.drain()
      await Promise.allSettled(removing)
      if (!removeAll) await discard(unused)
    },
  }
}
