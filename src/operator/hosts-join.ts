// `npm run hosts -- join-token`: what the door at which a host joins tells the database.

import { access } from 'node:fs/promises'
import type { Kysely } from 'kysely'
import type { Config } from '../config.ts'
import { newId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { type Address, addressText } from '../lib/setting-values.ts'
import { identityFileIn } from '../processes/channel.ts'
import type { Database } from '../store/db.ts'
import { listHosts } from '../store/hosts.ts'
import { joinHost, type JoinOutcome } from '../store/joined-hosts.ts'
import { type Door, type NewMember, openDoor } from '../supervisor/join/door.ts'
import { isAnyAddress } from '../supervisor/join/join.ts'
import { Refusal } from '../supervisor/join/protocol.ts'
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
  const enter = async ({ instance, engine }: NewMember): Promise<void> => {
    const address = addressText(engine)
    const outcome = await joinHost(db, { newId: newId('host'), name, instance, address, at: new Date() })
    const why = refusalOf(outcome, name)
    if (why !== null) throw new Refusal(why)
  }
  return await openDoor({ dataDir, name, at, link, enter, refused, log })
}

function refusalOf(outcome: JoinOutcome, name: string): string | null {
  switch (outcome.kind) {
    case 'joined':
      return null
    case 'name_taken':
      return `${name} is the name of another machine; take another name, or run "npm run hosts -- remove ${name}" first`
    case 'has_name':
      return `it has joined as ${outcome.name}; join it by that name`
    case 'had_server':
      return `its data directory has been used by a server of this database, as ${outcome.name}; join it with an empty BERTH_DATA_DIR`
  }
}
