// `berth db`: runs the client of a database in the database's own unit, where it needs no password of yours.

import { UsageError } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { runIn, spawnOptions } from './exec.ts'

/** Each with what the unit's own environment says; the arguments come as they are. */
const clients: Record<string, string> = {
  psql: 'exec psql -U "${POSTGRES_USER:-postgres}" -d "${POSTGRES_DB:-postgres}" "$@"',
  mariadb: 'MYSQL_PWD="$MARIADB_PASSWORD" exec mariadb -u "$MARIADB_USER" "$@" "$MARIADB_DATABASE"',
  'redis-cli': 'exec redis-cli "$@"',
  mongosh: 'exec mongosh --quiet -u "$MONGO_INITDB_ROOT_USERNAME" -p "$MONGO_INITDB_ROOT_PASSWORD" "$@"',
}

export async function db(context: Context): Promise<number> {
  const [client = '', word = ''] = context.args.args
  const line = Object.hasOwn(clients, client) ? clients[client] : undefined
  if (line === undefined) throw new UsageError(`"${client}" is none of ${Object.keys(clients).join(', ')}`)
  const asked = spawnOptions(context.args)
  const unit = await unitOf(context, word)
  return await runIn(context, unit, ['sh', '-c', line, client, ...context.args.rest], asked)
}
