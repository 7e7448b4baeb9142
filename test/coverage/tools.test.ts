// S1 and S2 by MCP: each tool is called by callers that may call it and by all others, with every kind of name. A
// tool without a line here fails, and so does a line without a tool.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { tools } from '../../src/api/mcp/tools/tools.ts'
import { SECOND } from '../../src/lib/clock.ts'
import {
  insertConnectedClient,
  makeEndedTokens,
  makeProcess,
  makeSession,
  makeTeam,
  makeUnit,
  type TestTeam,
} from '../support/make.ts'
import { answerCode } from '../support/code.ts'
import { callTool } from '../support/tool-calls.ts'
import { type Service, startService } from '../support/service.ts'
import { makeVictim, rowsOfTeam, type Victim } from '../support/victim.ts'

type Args = Record<string, unknown>

/** The arguments of a call that succeeds, with a thing that the caller may name; null when the tool names nothing. */
type Line =
  | { on: 'unit' | 'stack' | 'process'; args: (thing: string) => Args }
  | { on: null; args: () => Args }

let count = 0
const unique = () => `tool-${count++}`

const onUnit = (more: Args = {}): Line => ({ on: 'unit', args: (unit) => ({ unit, ...more }) })
const onStack = (more: Args = {}): Line => ({ on: 'stack', args: (stack) => ({ stack, ...more }) })
/** A process is named together with its unit. */
const onProcess = (more: Args = {}): Line => ({
  on: 'process',
  args: (process) => ({ unit: unitOf.get(process) ?? victim.units.running.id, process, ...more }),
})
const onNothing = (args: () => Args = () => ({})): Line => ({ on: null, args })

const lines: Record<string, Line[]> = {
  create_unit: [onNothing(() => ({ name: unique(), image: 'node:22' }))],
  create_from_recipe: [onNothing(() => ({ recipe: 'redis', wait_seconds: 0, name: unique() }))],
  list_recipes: [onNothing(), onNothing(() => ({ recipe: 'redis' }))],
  list_units: [onNothing(), onStack()],
  get_unit: [onUnit()],
  run_code: [onUnit({ code: '1' })],
  run_command: [onUnit({ argv: ['true'] })],
  read_process: [onUnit(), onProcess()],
  signal_process: [onProcess({ signal: 'TERM' })],
  read_logs: [onUnit()],
  write_file: [onUnit({ path: '/a', text: 'x' })],
  read_file: [onUnit({ path: '/a' })],
  expose_port: [onUnit({ port: 8080 })],
  fork: [
    { on: 'unit', args: (unit) => ({ unit, name: unique() }) },
    { on: 'stack', args: (stack) => ({ stack, into: unique() }) },
  ],
  set_sleep: [onUnit({ sleep: '1h' })],
  stop_unit: [onUnit()],
  start_unit: [onUnit()],
  destroy_unit: [{ on: 'unit', args: (unit) => ({ unit, confirm: named.get(unit) ?? unit }) }],
  destroy_stack: [{ on: 'stack', args: (stack) => ({ stack, confirm: named.get(stack) ?? stack }) }],
  get_limits: [onNothing(), onNothing(() => ({ days: 1 }))],
  read_audit: [onNothing()],
  contact_support: [onNothing(() => ({ topic: 'idea', message: 'more' }))],
}

/** The name of a unit or stack, by its id. */
const named = new Map<string, string>()
/** The unit of a process, by their ids. */
const unitOf = new Map<string, string>()

let service: Service
let victim: Victim
let client: string
let ended: Record<string, string>
/** A new one for each test, so that the audit log has nothing of earlier tests. */
let stranger: TestTeam & { token: string; cookie: string }

beforeAll(async () => {
  service = await startService({ loops: false, supportEmail: 'support@operator.test' })
  answerCode(service)
  victim = await makeVictim(service)
  client = await insertConnectedClient(service, victim)
  ended = await makeEndedTokens(service, victim)
})
afterAll(async () => await service.close())
beforeEach(async () => {
  const team = await makeTeam(service)
  const token = await insertConnectedClient(service, team)
  stranger = { ...team, token, cookie: await makeSession(service, team) }
})

const each = Object.entries(lines).flatMap(([tool, its]) =>
  its.map((line) => [`${tool}${line.on === null ? '' : ` on a ${line.on}`}`, tool, line] as const),
)

async function ownThing(on: Line['on'], as: { key: string }): Promise<string> {
  if (on === null) return ''
  const unit = await makeUnit(service, as, { ports: [8080] })
  await service.fetch('PUT', `/v1/units/${unit.id}/files?path=/a`, { ...as, body: 'x' })
  named.set(unit.id, unit.name).set(unit.stackId, unit.name)
  if (on === 'process') {
    const process = await makeProcess(service, as, unit.id)
    unitOf.set(process, unit.id)
    return process
  }
  return on === 'stack' ? unit.stackId : unit.id
}

const rowsOf = async (requestId: string) =>
  await service.app.db
    .selectFrom('audit')
    .select(['team_id', 'credential_id', 'via', 'status'])
    .where('request_id', '=', requestId)
    .execute()

test('every tool has a line in the table, and no other', () => {
  expect(Object.keys(lines).toSorted()).toEqual(tools.map(({ name }) => name).toSorted())
})

describe('a connected client may call', () => {
  test.each(each)('%s', async (_title, tool, line) => {
    const as = { key: victim.key.secret }
    const args = line.args(await ownThing(line.on, as))
    const called = await callTool(service, { key: client, tool, args })
    expect(called).toMatchObject({ status: 200, isError: false })
    expect(await rowsOf(called.requestId)).toMatchObject([{ team_id: victim.teamId, via: 'mcp' }])
  })
})

describe('a caller outside the team reaches nothing of it by', () => {
  test.each(each)(
    '%s',
    async (_title, tool, line) => {
      const before = await rowsOfTeam(service, victim.teamId)
      const engineCalls = service.engine.calls.length
      for (const [what, key] of Object.entries(ended)) {
        // Slowly enough for the limit on guesses from one address.
        service.clock.advance(SECOND)
        const args = line.args(victim.units.running.id)
        const refused = await callTool(service, { key, tool, args })
        expect([what, refused.status]).toEqual([what, 401])
        expect(refused.text).not.toMatch(/canary/i)
        expect(await rowsOf(refused.requestId)).toEqual([])
      }
      // A session is not accepted here, nor is a team that the token does not belong to.
      const args = line.args(victim.units.running.id)
      const bySession = await callTool(service, { cookie: stranger.cookie, tool, args })
      expect(bySession.status).toBe(401)
      const headers = { 'x-berth-team': victim.teamId }
      expect((await callTool(service, { key: stranger.token, tool, args, headers })).status).toBe(403)
      for (const thing of line.on === null ? [''] : Object.values(victim.names)) {
        const sent = line.args(thing)
        const strange = await callTool(service, { key: stranger.token, tool, args: sent })
        expect([thing, strange.status, strange.isError]).toEqual([thing, 200, line.on !== null])
        let { text } = strange
        for (const value of Object.values(sent)) text = text.replaceAll(String(value), '')
        expect(text).not.toMatch(/canary/i)
        for (const name of Object.values(victim.names)) expect(text).not.toContain(name)
        for (const row of await rowsOf(strange.requestId)) expect(row.team_id).toBe(stranger.teamId)
      }
      expect(await rowsOfTeam(service, victim.teamId)).toEqual(before)
      const ids = Object.values(victim.units).map(({ id }) => id)
      const asked = service.engine.calls.slice(engineCalls)
      expect(asked.filter(({ id }) => id !== null && ids.includes(id))).toEqual([])
    },
    60_000,
  )
})

test('a tool that names another team’s stack makes a stack of the caller’s own', async () => {
  const before = await rowsOfTeam(service, victim.teamId)
  const { name } = victim.units.running
  const own = await ownThing('unit', stranger)
  for (const [tool, args] of [
    ['create_unit', { name: unique(), image: 'node:22', stack: name }],
    ['create_from_recipe', { recipe: 'redis', wait_seconds: 0, name: unique(), stack: name }],
    ['fork', { unit: own, into: name }],
  ] as const) {
    const made = await callTool(service, { key: stranger.token, tool, args })
    expect([tool, made.isError]).toEqual([tool, false])
    for (const foreign of [victim.teamId, victim.units.running.id, victim.units.running.stackId])
      expect(made.text).not.toContain(foreign)
  }
  expect(await rowsOfTeam(service, victim.teamId)).toEqual(before)
})
