// A team that has been busy for long: thousands of units and a long audit log, written straight into the database.

import { type Kysely, sql } from 'kysely'
import type { Database } from '../src/store/db.ts'

/** Half of the units sleep. Agents are spread over keys, but for one that is rare. Answers the units' ids. */
export async function fillTeam(
  db: Kysely<Database>,
  { teamId, units, audit, keyIds }: { teamId: string; units: number; audit: number; keyIds: string[] },
): Promise<string[]> {
  const hex = sql`lpad(to_hex(n), 32, '0')`
  await sql`
    insert into stacks (id, team_id, name, created_at)
    select 'stack_' || ${hex}, ${teamId}, 'stack-' || n, now() from generate_series(1, ${Math.ceil(units / 10)}) n
  `.execute(db)
  const spec = {
    entrypoint: null,
    cmd: ['node', 'server.js'],
    env: { PORT: '3000', TOKEN: { secret: 'TOKEN' } },
    ports: [3000],
    databasePorts: [],
    expose: null,
    volume: null,
    files: [],
    healthcheck: null,
  }
  const { rows } = await sql<{ id: string }>`
    insert into units
      (id, team_id, stack_id, name, image, size, spec, isolation, network_group, host_id, held_by, state, generation,
       stopped_reason, sleep, created_at, changed_at)
    select 'unit_' || ${hex}, ${teamId}, 'stack_' || lpad(to_hex(n % ${Math.ceil(units / 10)} + 1), 32, '0'), 'unit-' || n,
      'node:22', 'small', ${JSON.stringify(spec)}::jsonb, 'runc', (select network_group from teams where id = ${teamId}), (select id from hosts limit 1),
      ${keyIds[0] ?? ''}, 'stopped', 1, 'user', '30m', now(), now()
    from generate_series(1, ${units}) n
    returning id
  `.execute(db)
  await sql`
    insert into meters
      (kind, unit_id, generation, team_id, host_id, held_by, size, price_nano_cents_per_hour, started_at,
       ended_at, billed_to)
    select 'compute', id, 1, team_id, host_id, held_by, size, 500000000, now() - interval '1 day', now(), now() from units
  `.execute(db)
  for (let from = 1; from <= audit; from += 50_000) {
    await sql`
      insert into audit (id, team_id, credential_kind, credential_id, credential_name, action, target, input, request_id,
        via, agent_name, agent_version, user_agent, started_at, duration_ms, status)
      select 'audit_' || ${hex}, ${teamId}, 'key', (${keyIds}::text[])[n % ${keyIds.length} + 1], 'a key', 'unit.exec',
        'unit_' || ${hex}, '{"cmd": ["sh", "-c", "echo hello"], "timeoutMs": 120000}', 'req_' || ${hex}, 'api',
        case when n % 100003 = 0 then 'rare' when n % 3 = 0 then 'claude-code' when n % 3 = 1 then 'codex' end,
        '1.0', 'claude-code/1.0 (external, cli)', now() - (${audit} - n) * interval '1 second', 12.5, 200
      from generate_series(${from}::int, ${Math.min(from + 49_999, audit)}::int) n
    `.execute(db)
  }
  await sql`vacuum analyze`.execute(db)
  return rows.map(({ id }) => id)
}
