// Lets the connections of restricted machines through by name. It reads what strangers send, and has neither a
// database nor a socket on which the engine does anything for it.

import { createNames } from '../egress/names.ts'
import { startEgress } from '../egress/egress.ts'
import { namesOf } from '../engine/oci/network/names.ts'
import { systemClock } from '../lib/clock.ts'
import { EGRESS_PORTS, egressSocketsOf } from './channel.ts'
import type { ProcessMain } from './run-process.ts'

export const egressProcess: ProcessMain = async ({ instance, runDir, log }) => {
  const egress = await startEgress({
    address: namesOf(instance).gateway,
    ports: EGRESS_PORTS,
    socketPath: egressSocketsOf(runDir).rules,
    resolve: createNames({ servers: null }),
    log,
    clock: systemClock,
  })
  return { stop: async () => await egress.close() }
}
