// /mcp with the published clients, of the newest revision and of earlier ones: what agents do all day.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AuditTable } from '../../src/store/audit.ts'
import { type McpSession, newEra, oldEra } from '../support/mcp.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())

const rowsOf = async (
  { teamId }: TestTeam,
  action: string,
): Promise<Omit<AuditTable, 'cost_delta_nanocents'>[]> =>
  await service.app.db
    .selectFrom('audit')
    .selectAll()
    .where('team_id', '=', teamId)
    .where('action', '=', action)
    .orderBy('id')
    .execute()

describe.each([
  ['of 2025', oldEra],
  ['of 2026', newEra],
])('the MCP client %s', (_era, connect) => {
  let session: McpSession
  let own: TestTeam

  beforeAll(async () => {
    own = await makeTeam(service)
    session = await connect({ baseUrl: service.baseUrl, key: own.key })
  })
  afterAll(async () => await session.close())

  test('gets instructions and the list of tools', async () => {
    expect(session.instructions).toContain('Berth runs Linux containers')
    const names = (await session.tools()).map(({ name }) => name)
    expect(names).toContain('create_unit')
    expect(names).toContain('run_command')
  })

  test('creates a unit, works in it and destroys it, with one audit row for each call', async () => {
    const made = await session.call('create_unit', { name: 'web', image: 'node:22' })
    expect(made).toMatchObject({
      isError: false,
      structuredContent: {
        units: [{ name: 'web', stack: 'web', state: 'running' }],
        costLine: expect.stringContaining('an hour'),
        next: expect.stringContaining('run_command'),
      },
    })
    expect(JSON.parse(made.text)).toEqual(made.structuredContent)

    const listed = await session.call('list_units')
    expect(listed.structuredContent).toMatchObject({ units: [{ name: 'web' }] })

    const ran = await session.call('run_command', { unit: 'web', argv: ['echo', 'hello'] })
    expect(ran.text).toMatch(/^exit 0 after [\d.]+ s · 6 characters\n<output (\w+)>\nhello\n<\/output \1>$/)

    const gone = await session.call('destroy_unit', { unit: 'web', confirm: 'web' })
    expect(gone.structuredContent).toMatchObject({ name: 'web', state: 'destroyed' })

    for (const action of ['unit.create', 'unit.list', 'unit.exec', 'unit.destroy']) {
      expect(await rowsOf(own, action)).toMatchObject([
        {
          via: 'mcp',
          agent_name: 'codex',
          agent_version: '0.169.0',
          credential_id: own.keyId,
          error_code: null,
        },
      ])
    }
  })

  test('keeps a unit to the hosts it names, and is told which secret the team lacks', async () => {
    const unit = { name: 'bound', image: 'node:22', allow: ['preset:npm'] }
    const secret = { ...unit, env: { KEY: { teamSecret: 'KEY' } } }
    expect((await session.call('create_unit', secret)).text).toContain('KEY')
    expect((await session.call('create_unit', { ...unit, allow: ['*'] })).text).toContain('mode "open"')
    expect(await session.call('create_unit', unit)).toMatchObject({ isError: false })
    const { egress } = await service.app.db
      .selectFrom('units')
      .select('egress')
      .where('team_id', '=', own.teamId)
      .where('name', '=', 'bound')
      .executeTakeFirstOrThrow()
    expect(egress).toMatchObject({ mode: 'listed', allow: ['preset:npm'] })
    await session.call('destroy_unit', { unit: 'bound', confirm: 'bound' })
  })
})
