// How the server calls the engines of hosts that have joined.

import type { Engine } from '../engine/engine.ts'
import type { FarAddress, FarEngine } from '../engine/fleet.ts'
import { guardEngine } from '../engine/guarded.ts'
import { connectFarEngine } from '../engine/ipc/client.ts'
import { parseAddress } from '../lib/setting-values.ts'
import type { FollowedIdentity } from './identity.ts'

/** `identity` null: this server has none, and its hosts are away with that reason. */
export function openFarEngines({
  identity,
  epoch,
}: {
  identity: FollowedIdentity | null
  epoch: number
}): (to: FarAddress) => FarEngine {
  if (!identity)
    return () => ({ engine: guardEngine({} as Engine, () => new Error(NO_IDENTITY)), cut: () => {} })
  return ({ name, address, memberSince }) =>
    connectFarEngine({
      address: {
        ...parseAddress(address),
        name,
        identity: () => identity.current(),
        ...(memberSince && { memberSince }),
      },
      epoch,
      // One host that follows another server is away (domain/hosts), and does not end this one.
      onLost: () => {},
    })
}

const NO_IDENTITY = 'this server was started without BERTH_HOSTS_ADDRESS, and so calls no other host'
