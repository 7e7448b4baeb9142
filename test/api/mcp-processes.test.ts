// Commands that outlive the tool call that began them, and the answer about a command whose unit was stopped during
// it.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CallSettings, type McpSession, newEra, oldEra } from '../support/mcp.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())

describe.each([
  ['of 2025', oldEra],
  ['of 2026', newEra],
])('an MCP client %s', (_era, connect) => {
  let team: TestTeam
  let session: McpSession

  beforeAll(async () => {
    team = await makeTeam(service)
    session = await connect({ baseUrl: service.baseUrl, key: team.key })
    await makeUnit(service, team, { name: 'build' })
  })
  afterAll(async () => await session.close())

  const call = async (name: string, args: Record<string, unknown>, settings: CallSettings = {}) =>
    await session.call(name, { unit: 'build', ...args }, settings)

  const begin = async (command: string, rest: Record<string, unknown> = {}) => {
    const { structuredContent } = await call('run_command', { command, background: true, ...rest })
    expect(structuredContent).toMatchObject({
      state: 'running',
      next: expect.stringContaining('read_process'),
    })
    return String(structuredContent?.['process'])
  }

  test('begins a command in the background, and waits for its end later', async () => {
    const process = await begin('cat; echo compiled >&2; exit 3', { stdin: 'read\n', cwd: '/tmp' })
    const { text, isError } = await call('read_process', { process, wait_seconds: 40 })
    expect(isError).toBe(false)
    expect(text).toMatch(
      /^exit 3 · 14 characters · next: 14 [^\n]*\n<output (\w{8})>\nread\ncompiled\n<\/output \1>$/,
    )
    expect((await call('read_process', { process, after: 14 })).text).toMatch(
      /^exit 3 · no output · next: 14/,
    )
    expect((await call('read_process', {})).structuredContent).toMatchObject({
      processes: [{ process, cmd: 'sh -c cat; echo compiled >&2; exit 3', state: 'exited', exitCode: 3 }],
    })
    const rows = await service.app.db
      .selectFrom('audit')
      .select(['action', 'status', 'via', 'input'])
      .where('team_id', '=', team.teamId)
      .where('action', 'like', 'process.%')
      .orderBy('id')
      .execute()
    expect(rows.map(({ action, status }) => [action, status])).toEqual([
      ['process.start', 201],
      ['process.output', 200],
      ['process.output', 200],
      ['process.list', 200],
    ])
    expect(rows[0]).toMatchObject({ via: 'mcp', input: { keepsAwake: true, cwd: '/tmp' } })
  })

  test('gets the latest output as progress, and the output so far when the wait is over', async () => {
    const process = await begin('echo linking; sleep infinity')
    const heard: string[] = []
    const onProgress = (message: string) => heard.push(message)
    const { text } = await call('read_process', { process, wait_seconds: 3 }, { onProgress })
    expect(text).toMatch(/^running · 8 characters · next: 8 [^\n]* · wait_seconds waits/)
    expect(heard).toContainEqual(expect.stringContaining('linking'))
    expect((await call('read_process', { process })).text).toContain('\nlinking\n')

    const ended = await call('signal_process', { process })
    expect(ended.structuredContent).toMatchObject({ process, state: 'exited', exitCode: 143 })
    const again = await call('signal_process', { process, signal: 'INT' })
    expect(again).toMatchObject({ isError: true, text: expect.stringContaining('invalid_state') })
  })

  test('continues reading where output was left out', async () => {
    const process = await begin('echo é; head -c 3000')
    const first = await call('read_process', { process, wait_seconds: 40, max_output: 200 })
    expect(first.text).toMatch(/^exit 0 · 3,002 characters · next: 3003 /)
    const after = Number(/after: (\d+) reads on there/.exec(first.text)?.[1])
    // Cut at the end of a line, and counted in bytes.
    expect(after).toBe(3)
    const rest = await call('read_process', { process, after })
    expect(rest.text).toMatch(/^exit 0 · 3,000 characters · next: 3003 /)
  })

  test('is told that a process does not exist', async () => {
    const { text, isError } = await call('read_process', { process: 'proc_none' })
    expect(isError).toBe(true)
    expect(text).toContain('not_found: ')
    expect(text).toContain('read_process what runs in the background')
  })

  test('gets the output that a command printed before its unit was stopped', async () => {
    const { id } = await makeUnit(service, team, { name: 'doomed' })
    const command = 'echo half way; echo careful >&2; sleep infinity'
    const running = session.call('run_command', { unit: 'doomed', command, timeout_seconds: 3600 })
    await expect.poll(() => service.app.activity.uses.of(id)).toBe(1)
    await service.call('POST', `/v1/units/${id}/stop`, { key: team.key })
    const { text, isError } = await running
    expect(isError).toBe(true)
    expect(text).toMatch(
      /^invalid_state: .*was stopped while the command ran[^]*<output (\w{8})>\nhalf way\n<\/output \1>\n<stderr \1>\ncareful\n<\/stderr \1>$/,
    )
  })
})
