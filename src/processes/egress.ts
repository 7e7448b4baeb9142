// Lets the connections of restricted machines through by name. It reads what strangers send, and has neither a
// database nor a socket on which the engine does anything for it.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createNames } from '../egress/names.ts'
import { startEgress } from '../egress/egress.ts'
import { namesOf } from '../engine/oci/network/names.ts'
import { bundlePaths } from '../lib/egress/trust.ts'
import { systemClock } from '../lib/clock.ts'
import { EGRESS_PORTS, egressSocketsOf } from './channel.ts'
import type { ProcessMain } from './run-process.ts'

/** The roots that programs of this host trust. */
async function readHostBundle(): Promise<string | null> {
  for (const path of bundlePaths) {
    const bundle = await readFile(path, 'utf8').catch(() => null)
    if (bundle !== null) return bundle
  }
  return null
}

export const egressProcess: ProcessMain = async ({ instance, runDir, stateDir, log }) => {
  const egress = await startEgress({
    address: namesOf(instance).gateway,
    ports: EGRESS_PORTS,
    socketPath: egressSocketsOf(runDir).rules,
    resolve: createNames({ servers: null }),
    stateDir: join(stateDir, 'authorities'),
    roots: readHostBundle,
    log,
    clock: systemClock,
  })
  return { stop: async () => await egress.close() }
}
