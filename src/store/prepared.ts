// Statements that are put together once and planned once a connection, not at each call: a question over many tables takes
// Postgres three times as long to plan as to answer, and us as long to write down. For those that somebody waits for.

import { type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely'
import pg from 'pg'
import type { Database } from './db.ts'

/** What stands for a value in the statement. */
export type Given<Values> = { [K in keyof Values]: RawBuilder<Values[K]> }

/** `name`: no other statement's. `fields`: the values it is given at each call. */
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

/** What the pool makes its connections of: tells Postgres the names of such statements, which Kysely knows nothing of. */
export class PreparingClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    // Of the class, looked up at each call: whoever counts statements in a test finds it there.
    const ask: Query = (...given) => (super.query as Query).call(this, ...given)
    const prepared = (text: unknown, ...rest: unknown[]): unknown => {
      const name = typeof text === 'string' ? NAME.exec(text)?.[1] : undefined
      return name === undefined ? ask(text, ...rest) : ask({ name, text }, ...rest)
    }
    this.query = prepared as typeof this.query
  }
}
