// The server's identity in the fleet: with it the server answers gateways of other hosts, and calls their engines.

import { systemClock } from '../lib/clock.ts'
import { identityFileIn } from './channel.ts'
import { type FollowedIdentity, followIdentity } from './identity.ts'
import type { ProcessContext } from './run-process.ts'

/** Null without other hosts. The supervisor writes the file before the server starts, and renews it. */
export async function openServerIdentity({
  config,
  stateDir,
  log,
}: Pick<ProcessContext, 'config' | 'stateDir' | 'log'>): Promise<FollowedIdentity | null> {
  if (!config.hostsAddress) return null
  return await followIdentity(identityFileIn(stateDir), { log, clock: systemClock })
}
