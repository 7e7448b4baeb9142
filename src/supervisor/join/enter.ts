// A host that has joined becomes a host of the service.

import type { Kysely } from 'kysely'
import { newId } from '../../lib/ids.ts'
import { addressText } from '../../lib/setting-values.ts'
import type { Database } from '../../store/db.ts'
import { setHostNode } from '../../store/host-nodes.ts'
import { joinHost, type JoinOutcome } from '../../store/joined-hosts.ts'
import type { NewMember } from './door.ts'
import { Refusal } from './protocol.ts'

/** Throws `Refusal` with a sentence if it cannot be one. */
export async function enterHost(
  db: Kysely<Database>,
  { name, instance, engine, node }: NewMember,
): Promise<void> {
  const address = addressText(engine)
  const outcome = await joinHost(db, { newId: newId('host'), name, instance, address, at: new Date() })
  const why = refusalOf(outcome, name)
  if (why !== null) throw new Refusal(why)
  if (node) await setHostNode(db, { name, node })
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
