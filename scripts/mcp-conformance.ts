// `npm run mcp:conformance`: the official conformance suite of the Model Context Protocol against /mcp, for the newest revision and the
// one before it. A Postgres and a server of its own, the engine in memory; the suite sends no credentials, so a proxy adds a
// key. The suite is fetched by npx. Scenarios that ask for the suite's own example tools fail here, and say so.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startScratchService } from '../test/support/scratch-service.ts'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const REVISIONS = ['2026-07-28', '2025-11-25']

const { dir, key, server, stop } = await startScratchService('conformance')
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
  await stop()
}
