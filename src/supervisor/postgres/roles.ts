// The database `berth` and its roles. `berth` owns it; `berth_gateway` only sees what a migration grants it. Neither
// is a superuser, because a superuser of Postgres may read files and run programs.

import pg from 'pg'

/** Idempotent. Throws while the server accepts no connections yet. */
export async function prepareRoles(url: (database: string) => string): Promise<void> {
  await withClient(url('postgres'), async (client) => {
    const roles = await names(client, 'SELECT rolname AS name FROM pg_roles')
    for (const role of ['berth', 'berth_gateway']) {
      if (!roles.includes(role)) await client.query(`CREATE ROLE ${role} LOGIN`)
    }
    const databases = await names(client, 'SELECT datname AS name FROM pg_database')
    if (!databases.includes('berth')) await client.query('CREATE DATABASE berth OWNER berth')
  })
  await withClient(url('berth'), async (client) => {
    await client.query('ALTER SCHEMA public OWNER TO berth')
    await client.query('GRANT USAGE ON SCHEMA public TO berth_gateway')
  })
}

async function names(client: pg.Client, query: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(query)
  return rows.map((row) => row.name)
}

async function withClient(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 })
  // The query in progress reports a lost connection; without a listener it would end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
