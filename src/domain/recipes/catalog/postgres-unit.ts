import type { Size } from '../../../contract/policy.ts'
import type { RecipeUnit } from '../define.ts'

/** A PostgreSQL with a database, a user that owns it, and a volume. */
export function postgresUnit(of: {
  database: string
  user: string
  password: string
  size: Size
  volumeGb: number
}): RecipeUnit {
  return {
    image: 'berth.local/postgres:15',
    size: of.size,
    env: {
      POSTGRES_DB: of.database,
      POSTGRES_USER: of.user,
      POSTGRES_PASSWORD: { secret: 'POSTGRES_PASSWORD', value: of.password },
    },
    ports: [5432],
    databasePorts: [{ port: 5432, protocol: 'postgres' }],
    volume: { mount: '/var/lib/postgresql/data', gb: of.volumeGb },
    healthcheck: { cmd: ['pg_isready', '--quiet', '--host=127.0.0.1'], timeoutMs: 120_000 },
  }
}
