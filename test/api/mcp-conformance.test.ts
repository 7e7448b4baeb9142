// The official conformance suite of the Model Context Protocol, in both revisions, against our own endpoint: with the
// example server that the suite expects, and with the tools of units.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { requiredOfServers, runSuite, startKeyProxy } from '../support/conformance.ts'
import { skippedScenarios } from '../support/conformance-skipped.ts'
import { makeTeam } from '../support/make.ts'
import { openFixture } from '../support/mcp-fixture/fixture.ts'
import { type Service, type ServiceOptions, startService } from '../support/service.ts'

const revisions = ['2026-07-28', '2025-11-25']

let dir: string
const services: Service[] = []
const proxies: Awaited<ReturnType<typeof startKeyProxy>>[] = []

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'berth-conformance-'))
})
afterAll(async () => {
  for (const proxy of proxies) proxy.close()
  for (const service of services) await service.close()
  await rm(dir, { recursive: true })
})

async function serve(options: ServiceOptions): Promise<string> {
  const service = await startService({ ...options, loops: false })
  services.push(service)
  const proxy = await startKeyProxy(service.baseUrl, (await makeTeam(service)).key)
  proxies.push(proxy)
  return proxy.url
}

/** Returns the scenarios that passed, and those that the revision requires and that did not pass. */
async function conformance(url: string, revision: string) {
  const asked = ['server', '--url', url, '--requirements', revision, '-o', dir]
  const { code, said } = await runSuite(asked)
  const passed = [...said.matchAll(/^✓ (\S+): [1-9]\d* passed, 0 failed/gm)].map(([, name = '']) => name)
  const required = await requiredOfServers(revision)
  return { code, passed, failed: required.filter((name) => !passed.includes(name)) }
}

test('the MCP endpoint passes every scenario that a revision requires of a server', {
  timeout: 120_000,
}, async () => {
  const url = await serve({ openMcp: openFixture })
  const newest = await conformance(url, '2026-07-28')
  expect(newest).toMatchObject({ code: 0, failed: [] })
  expect(newest.passed).toContain('server-stateless')
  const before = await conformance(url, '2025-11-25')
  expect(before).toMatchObject({ code: 0, failed: [] })
  expect(before.passed).toContain('server-initialize')
})

/** Scenarios that apply to a server with any tools. */
const ofAnyServer = ['tools-list', 'dns-rebinding-protection']
const ofRevision: Record<string, string[]> = {
  '2026-07-28': ['http-header-validation', 'input-required-result-unsupported-methods'],
  '2025-11-25': ['server-initialize', 'ping'],
}

test('each scenario that is skipped is one that a revision requires', async () => {
  const required = (await Promise.all(revisions.map(requiredOfServers))).flat()
  expect(Object.keys(skippedScenarios).filter((name) => !required.includes(name))).toEqual([])
})

test.each(revisions)(
  'the tools of units pass what revision %s requires of any server',
  { timeout: 120_000 },
  async (revision) => {
    const { passed, failed } = await conformance(await serve({}), revision)
    expect(passed).toEqual(expect.arrayContaining([...ofAnyServer, ...(ofRevision[revision] ?? [])]))
    expect(failed.filter((name) => !(name in skippedScenarios))).toEqual([])
  },
)
