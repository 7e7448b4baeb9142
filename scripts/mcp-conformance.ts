// `npm run mcp:conformance`: the official conformance suite of the Model Context Protocol against /mcp, for the newest revision and the
// one before it. A Postgres and a server of its own, the engine in memory; the suite sends no credentials, so a proxy adds a
// key. The suite is fetched by npx. Scenarios that ask for the suite's own example tools fail here, and say so.

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { policySchema } from '../src/contract/policy.ts'
import { createAccount } from '../src/domain/accounts/create.ts'
import { createKey } from '../src/domain/credentials/keys.ts'
import { silentLog } from '../src/lib/log.ts'
import { openDatabase } from '../src/store/db.ts'
import { migrate } from '../src/store/migrate.ts'
import { startPostgres } from '../src/supervisor/postgres.ts'
import { startApiProcess } from '../test/support/api-process.ts'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const REVISIONS = ['2026-07-28', '2025-11-25']

const dir = await mkdtemp(join(tmpdir(), 'berth-conformance-'))
await chmod(dir, 0o711)
const postgres = await startPostgres({ dataDir: dir, socketDir: join(dir, 'socket'), log: silentLog })
const databaseUrl = postgres.url('berth')
const db = openDatabase(databaseUrl, silentLog)
await migrate(db)
const createdAt = new Date()
const owner = await createAccount(db, {
  email: 'conformance@example.test',
  name: 'Conformance',
  admin: false,
  plan: 'team',
  paysAsItGoes: true,
  freeCreditsCents: 0,
  createdAt,
})
const { teamId, userId: createdBy } = owner
const key = await createKey(db, {
  teamId,
  name: 'suite',
  policy: policySchema.parse({}),
  createdBy,
  createdAt,
})
const settings = { BERTH_RATE_REQUESTS: '1000000' }
const server = await startApiProcess({ databaseUrl, settings, secretKey: randomBytes(32).toString('hex') })
const target = new URL(server.baseUrl)

const proxy = createServer((incoming, outgoing) => {
  const headers = { ...incoming.headers, authorization: `Bearer ${key.secret}` }
  const { method, url } = incoming
  const passed = request(
    { host: target.hostname, port: target.port, method, path: url, headers },
    (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    },
  )
  passed.once('error', () => outgoing.destroy())
  outgoing.once('close', () => passed.destroy())
  incoming.pipe(passed)
})
await once(proxy.listen(0, '127.0.0.1'), 'listening')
const { port } = proxy.address() as AddressInfo

try {
  for (const revision of REVISIONS) {
    console.log(`\nrevision ${revision}`)
    const url = `http://127.0.0.1:${port}/mcp`
    const suite = spawn('npx', ['-y', SUITE, 'server', '--url', url, '--requirements', revision], {
      cwd: dir,
      stdio: 'inherit',
    })
    await once(suite, 'exit')
  }
} finally {
  proxy.closeAllConnections()
  proxy.close()
  await server.stop()
  await db.destroy()
  await postgres.stop()
  await rm(dir, { recursive: true, force: true })
}
