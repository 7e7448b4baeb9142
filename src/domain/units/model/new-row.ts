// The first row of a unit, for creates and forks.

import type { Insertable } from 'kysely'
import type { App } from '../../../app.ts'
import type { Metadata } from '../../../contract/metadata.ts'
import type { EgressRules } from '../../../lib/egress/rules.ts'
import { storedEgress } from '../../../store/egress.ts'
import type { CreatedBy, UnitsTable } from '../../../store/tables/unit-record.ts'
import type { Caller } from '../../credentials/caller.ts'

/** The fields that the create or the fork decides. */
type Decided = Pick<
  Insertable<UnitsTable>,
  | 'id'
  | 'stack_id'
  | 'name'
  | 'image'
  | 'size'
  | 'spec'
  | 'isolation'
  | 'host_id'
  | 'sleep'
  | 'sleeps_together'
  | 'time_to_live'
  | 'at_end'
> & { egress: EgressRules; metadata: Metadata }

/** In `creating`, for the caller's credential. */
export function newUnitRow(
  { clock }: Pick<App, 'clock'>,
  caller: Caller,
  decided: Decided,
): Insertable<UnitsTable> {
  const { teamId, networkGroup, credentialId } = caller
  const at = clock.now()
  const egress = storedEgress(decided.egress)
  return {
    ...decided,
    egress,
    metadata: JSON.stringify(decided.metadata),
    egress_version: egress === null ? 0 : 1,
    team_id: teamId,
    network_group: networkGroup,
    address: null,
    held_by: credentialId,
    state: 'creating',
    generation: 1,
    stopped_reason: null,
    frozen: false,
    progress: null,
    sleeps_at: null,
    last_used_at: null,
    created_at: at,
    changed_at: at,
    started_at: null,
    last_exit: null,
    error: null,
    destroys_at: null,
    forked_from: null,
    created_by: makerOf(caller),
  }
}

/** A session ends and its person stays. */
function makerOf({ kind, credentialId, credentialName, userId }: Caller): CreatedBy {
  return { id: kind === 'session' && userId !== null ? userId : credentialId, kind, name: credentialName }
}
