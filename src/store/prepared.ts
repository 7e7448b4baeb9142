// Prepared statements, which are built once and planned once per connection: a query over many tables takes Postgres
// three times as long to plan as to run. For queries that a client waits for.

import { type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely'
import pg from 'pg'
import type { Database } from './schema.ts'

/** The placeholders for the values of the statement. */
export type Given<Values> = { [K in keyof Values]: RawBuilder<Values[K]> }

/** `name` must be unique. `fields` are the values that each call provides. */
export function prepare<Row, Values extends Record<string, unknown>>(
  name: string,
  fields: (keyof Values & string)[],
  write: (given: Given<Values>, db: Kysely<Database>) => RawBuilder<Row>,
): (db: Kysely<Database>, values: Values) => Promise<Row[]> {
  const given = Object.fromEntries(fields.map((field) => [field, sql.val(new Gap(field))]))
  let written: CompiledQuery | null = null

  return async (db, values) => {
    written ??=
      sql<Row>`${sql.raw(`/* prepared as ${name} */`)} ${write(given as Given<Values>, db)}`.compile(db)
    const parameters = written.parameters.map((value) => (value instanceof Gap ? values[value.field] : value))
    const { rows } = await db.executeQuery<Row>({ ...written, parameters })
    return rows
  }
}

class Gap {
  readonly field: string
  constructor(field: string) {
    this.field = field
  }
}

const NAME = /^\/\* prepared as (\w+) \*\//

type Query = (...given: unknown[]) => unknown

/**
 * The client class of the pool: passes the names of prepared statements to Postgres, which Kysely does not support.
 */
export class PreparingClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    // Looked up on the class at each call, so that tests can count statements there.
    const ask: Query = (...given) => (super.query as Query).call(this, ...given)
    const prepared = (text: unknown, ...rest: unknown[]): unknown => {
      const name = typeof text === 'string' ? NAME.exec(text)?.[1] : undefined
      return name === undefined ? ask(text, ...rest) : ask({ name, text }, ...rest)
    }
    this.query = prepared as typeof this.query
  }
}
