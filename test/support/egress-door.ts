// What the doors of the egress process stand on (src/egress/door.ts), without an engine and without a nameserver.

import type { Door } from '../../src/egress/door.ts'
import { createOpenConnections } from '../../src/egress/open-connections.ts'
import type { MachineSeen } from '../../src/lib/egress/seen.ts'

/** Every name leads to one public address, and each note is added to `noted`. */
export function testDoor(rulesOf: Door['link']['rulesOf'], noted: MachineSeen[]): Door {
  return {
    link: {
      rulesOf,
      isWhole: () => true,
      pin: async () => false,
      tellSeen: async () => {},
      close: async () => {},
    },
    resolve: async () => ({ kind: 'addresses', addresses: ['203.0.113.1'] }),
    open: createOpenConnections(),
    note: (machine, line) => {
      noted.push({ ...line, machine })
      return { ...line, bytesIn: 0, bytesOut: 0, count: 0 }
    },
    enter: () => () => {},
    turn: () => null,
  }
}
