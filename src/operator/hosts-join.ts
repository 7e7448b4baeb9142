// `npm run hosts -- join-token`: what the door at which a host joins tells the database.

import { access } from 'node:fs/promises'
import type { Kysely } from 'kysely'
import type { Config } from '../config.ts'
import type { Log } from '../lib/log.ts'
import type { Address } from '../lib/setting-values.ts'
import { identityFileIn } from '../processes/channel.ts'
import type { Database } from '../store/db.ts'
import { listHosts } from '../store/hosts.ts'
import { type Door, openDoor } from '../supervisor/join/by-token.ts'
import type { NewMember } from '../supervisor/join/door.ts'
import { enterHost } from '../supervisor/join/enter.ts'
import { isAnyAddress } from '../supervisor/join/join.ts'
import { keptStateOf } from '../supervisor/process-command.ts'

export async function openDoorOf(
  { dataDir, hostsAddress }: Config,
  { db, log }: { db: Kysely<Database>; log: Log },
  { name, at, refused }: { name: string; at: Address; refused: (peer: string, why: string) => void },
): Promise<Door> {
  const isRunning = await access(identityFileIn(keptStateOf(dataDir, 'server'))).then(
    () => true,
    () => false,
  )
  if (hostsAddress === null || !isRunning)
    throw new Error(
      'Start Berth with BERTH_HOSTS_ADDRESS first, the address for other hosts, and set it for this command too.',
    )
  const named = (await listHosts(db)).find((each) => each.name === name && each.state !== 'removed')
  if (named && named.address === null)
    throw new Error(`${name} is the name of a host that is not another machine: take another name.`)
  const host = isAnyAddress(hostsAddress.host) ? at.host : hostsAddress.host
  const link = { host, port: hostsAddress.port }
  const enter = async (host: NewMember) => await enterHost(db, host)
  return await openDoor({ dataDir, name, at, link, enter, refused, log })
}
