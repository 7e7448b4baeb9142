// The published clients take up about 260 MB, so only the deep tier installs them.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('every published MCP client lists tools, creates, cancels and destroys with an API key', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['scripts/mcp-clients.ts'])
  expect(stdout).not.toContain('FAILED')
  expect(stdout.match(/^ok {6}/gm)).toHaveLength(8)
})
