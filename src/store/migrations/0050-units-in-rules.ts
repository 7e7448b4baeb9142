// Lists of what may be reached have no names of units any more (decisions/egress.md): those that have some lose them, which
// had no effect. The engine still takes them, so no rules are sent again.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`update units set egress = ${without(sql`egress`)} where ${has(sql`egress`)}`.execute(db)
  await sql`update teams set egress = ${without(sql`egress`)} where ${has(sql`egress`)}`.execute(db)
  const bound = sql`policy -> 'egress'`
  await sql`
    update credentials set policy = jsonb_set(policy, '{egress}', ${without(bound)}) where ${has(bound)}
  `.execute(db)
}

type Text = ReturnType<typeof sql>

/** Entries are in lower-case ASCII. */
const ofUnits = sql`entry ~ '[.]internal(:[0-9]+)?$'`

function has(rules: Text): Text {
  return sql`exists (select from jsonb_array_elements_text(${rules} -> 'allow') as listed (entry) where ${ofUnits})`
}

function without(rules: Text): Text {
  return sql`jsonb_set(${rules}, '{allow}', (
    select coalesce(jsonb_agg(entry order by place), '[]')
    from jsonb_array_elements_text(${rules} -> 'allow') with ordinality as listed (entry, place) where not ${ofUnits}
  ))`
}
