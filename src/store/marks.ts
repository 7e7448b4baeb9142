// Finds what has changed in a team, by marks: one for each unit, stack and agent, and one for the team with its members.
// A mark changes with every change that a response shows.

import { type Kysely, sql } from 'kysely'
import type { Database } from './db.ts'

export type Mark = {
  kind: 'unit' | 'stack' | 'agent' | 'team' | 'host'
  id: string
  /** Changes with what an answer shows. */
  mark: string
  /** Changes with use, which is told more seldom. Empty for what has none. */
  use: string
}

/** Of the team, its units that are not destroyed, its stacks that are not deleted, all of its agents, and its hosts. */
export async function listMarks(db: Kysely<Database>, teamId: string): Promise<Mark[]> {
  const { rows } = await sql<Mark>`
    select 'unit' as kind, units.id,
      concat_ws('|', revision, generation, state, frozen, sleep, name, stack_id, memory_outcome, error, destroys_at, host_id,
        md5(metadata::text), time_to_live, at_end, ends_at,
        (select string_agg(concat_ws(',', id, port, protocol, mode, name, gateway_port, md5(sealed_secret)), ';' order by id)
          from endpoints where unit_id = units.id and retired_at is null)) as mark,
      concat_ws('|', sleeps_at, last_used_at) as use
    from units where team_id = ${teamId} and state <> 'destroyed'
    union all
    select 'stack', id, name, '' from stacks where team_id = ${teamId} and deleted_at is null
    union all
    select 'agent', id, concat_ws('|', name, md5(policy::text), revoked_at, connected_at, md5(client::text)), coalesce(last_used_at::text, '')
    from credentials where team_id = ${teamId} and kind <> 'session'
    union all
    select 'team', id,
      concat_ws('|', name, plan, region, currency, pays_as_it_goes, md5(egress::text),
        (select string_agg(concat_ws(',', user_id, role, users.name, email), ';' order by user_id)
          from memberships join users on users.id = user_id where team_id = ${teamId}),
        (select string_agg(concat_ws(',', id, role, expires_at), ';' order by id) from invites where team_id = ${teamId})), ''
    from teams where id = ${teamId}
    union all
    select 'host', id, concat_ws('|', state, away_since, reason), '' from hosts
    where id in (select host_id from units where team_id = ${teamId} and state <> 'destroyed')
  `.execute(db)
  return rows
}
