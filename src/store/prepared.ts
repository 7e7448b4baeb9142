// Prepared statements, which are built once and planned once per connection: a query over many tables takes Postgres
// three times as long to plan as to run. `prepare` is for queries that are also long to build, and that a client waits for.

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

/** The defaults of pgjdbc, for the same purpose. */
const NAMED_FROM_USE = 5
const MAX_NAMED = 256
/** Of statements that have no name yet, how many are counted. */
const MAX_COUNTED = 1000

/** Names of statements that this process repeats, by text. Each connection prepares them at its own first use. */
const names = new Map<string, string>()
const uses = new Map<string, number>()

/** Returns the name under which to prepare the statement; undefined if it is to be planned each time. */
function nameOf(text: string, hasValues: boolean): string | undefined {
  const given = NAME.exec(text)?.[1]
  if (given !== undefined || !hasValues) return given
  const known = names.get(text)
  if (known !== undefined || names.size >= MAX_NAMED) return known
  const count = (uses.get(text) ?? 0) + 1
  if (count < NAMED_FROM_USE) {
    if (uses.size >= MAX_COUNTED) uses.clear()
    uses.set(text, count)
    return undefined
  }
  uses.delete(text)
  const name = `repeated_${names.size + 1}`
  names.set(text, name)
  return name
}

type Query = (...given: unknown[]) => unknown

/**
 * The client class of the pool: passes the names of prepared statements to Postgres, which Kysely does not support, and
 * prepares any other statement that is repeated (decisions/database.md).
 */
export class PreparingClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    // Looked up on the class at each call, so that tests can count statements there.
    const ask: Query = (...given) => (super.query as Query).call(this, ...given)
    const prepared = (text: unknown, ...rest: unknown[]): unknown => {
      const [values] = rest
      const hasValues = Array.isArray(values) && values.length > 0
      const name = typeof text === 'string' ? nameOf(text, hasValues) : undefined
      return name === undefined ? ask(text, ...rest) : ask({ name, text }, ...rest)
    }
    this.query = prepared as typeof this.query
  }
}
