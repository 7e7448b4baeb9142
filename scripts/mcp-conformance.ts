// `npm run mcp:conformance`: the official conformance suite of the Model Context Protocol against the tools at /mcp, for the newest
// revision and the one before it, with all that it says. A Postgres and a server of its own, the engine in memory. Scenarios that ask for
// the suite's own example tools fail here; the reasons are printed after them, and test/api/mcp-conformance.test.ts runs those
// with such tools.

import { runSuite, startKeyProxy } from '../test/support/conformance.ts'
import { skippedScenarios } from '../test/support/conformance-skipped.ts'
import { startScratchService } from '../test/support/scratch-service.ts'

const REVISIONS = ['2026-07-28', '2025-11-25']

const { dir, key, server, stop } = await startScratchService('conformance')
const proxy = await startKeyProxy(server.baseUrl, key.secret)
try {
  for (const revision of REVISIONS) {
    const asked = ['server', '--url', proxy.url, '--requirements', revision, '-o', dir]
    console.log((await runSuite(asked)).said)
  }
  console.log('Not measured with the tools of units:')
  for (const [name, why] of Object.entries(skippedScenarios)) console.log(`  ${name}: ${why}`)
} finally {
  proxy.close()
  await stop()
}
