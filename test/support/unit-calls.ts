// Each call of the API that is about a unit, as its owner sends it, and what must come of it. A test sees that no route is
// missing here.

import { expect } from 'vitest'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { Process, ProcessTable } from '../../src/contract/process.ts'
import type { Stack } from '../../src/contract/stack.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { type Answer, type Berth, eventually } from './berth.ts'
import type { Exec } from './berth-units.ts'
import { readEvents } from './events.ts'
import { openTerminal } from './terminal.ts'

export type Owner = {
  berth: Berth
  key: string
}

export type OwnedUnit = { owner: Owner; unit: Unit }

/** Sends a call with the owner's key. Bytes are sent and answered as they are. */
export async function callAs<T>(
  { berth, key }: Owner,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer<T>> {
  const isBytes = body instanceof Uint8Array
  const type = isBytes ? 'application/octet-stream' : 'application/json'
  const response = await fetch(`${berth.credentials.baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': type }) },
    ...(body === undefined ? {} : { body: isBytes ? new Uint8Array(body) : JSON.stringify(body) }),
  })
  const isJson = response.headers.get('content-type')?.includes('json') ?? false
  const answered = isJson ? await response.json() : Buffer.from(await response.arrayBuffer())
  return { status: response.status, body: answered as T }
}

type Call = (owner: Owner, unit: Unit) => Promise<void>

/** By the routes that they call, in an order in which they can be sent. */
export const unitCalls: { routes: string[]; call: Call }[] = [
  {
    routes: ['GET /v1/units/{id}', 'GET /v1/units', 'GET /v1/units/summary'],
    call: async (owner, unit) => {
      expect(await ok<Unit>(owner, 'GET', at(unit))).toMatchObject({ id: unit.id, host: unit.host })
      const { units } = await ok<{ units: Unit[] }>(owner, 'GET', '/v1/units')
      expect(units.map(({ id }) => id)).toContain(unit.id)
      await ok(owner, 'GET', '/v1/units/summary')
    },
  },
  {
    routes: ['POST /v1/units/{id}/exec'],
    call: async (owner, unit) => expect((await run(owner, unit, ['hostname'])).stdout).toBe(`${unit.name}\n`),
  },
  {
    routes: ['GET /v1/units/{id}/exec'],
    call: async (owner, unit) => {
      const { baseUrl } = owner.berth.credentials
      const url = `${baseUrl}${at(unit)}/exec?cmd=cat&tty=0`
      const terminal = await openTerminal(url, { headers: { authorization: `Bearer ${owner.key}` } })
      if (!('socket' in terminal)) throw new Error(JSON.stringify(terminal))
      terminal.type('typed\n')
      await eventually(async () => expect(terminal.printed()).toBe('typed\n'), 20_000)
      terminal.socket.close()
      await terminal.closed
    },
  },
  {
    routes: [
      'PUT /v1/units/{id}/files',
      'POST /v1/units/{id}/files',
      'GET /v1/units/{id}/files',
      'DELETE /v1/units/{id}/files',
      'GET /v1/units/{id}/directory',
    ],
    call: async (owner, unit) => {
      const file = `${at(unit)}/files?path=/root/letters/one`
      const letter = Buffer.from(`to ${unit.id}`)
      await run(owner, unit, ['mkdir', '-p', '/root/letters'])
      await ok(owner, 'PUT', file, letter)
      const json = { path: '/root/letters/two', contentBase64: letter.toString('base64') }
      await ok(owner, 'POST', `${at(unit)}/files`, json)
      expect(await ok(owner, 'GET', file)).toMatchObject({ contentBase64: letter.toString('base64') })
      await ok(owner, 'DELETE', file)
      const { entries } = await ok<{ entries: { name: string }[] }>(
        owner,
        'GET',
        `${at(unit)}/directory?path=/root/letters`,
      )
      expect(entries.map(({ name }) => name)).toEqual(['two'])
    },
  },
  {
    routes: [
      'PUT /v1/units/{id}/files/content',
      'GET /v1/units/{id}/files/content',
      'GET /v1/units/{id}/files/facts',
      'POST /v1/units/{id}/files/move',
      'POST /v1/units/{id}/directory',
    ],
    call: async (owner, unit) => {
      const letter = Buffer.from(`long, to ${unit.id}`)
      await ok(owner, 'POST', `${at(unit)}/directory`, { path: '/root/streams' })
      await ok(owner, 'PUT', `${at(unit)}/files/content?path=/root/streams/one`, letter)
      await ok(owner, 'POST', `${at(unit)}/files/move`, {
        path: '/root/streams/one',
        to: '/root/streams/two',
      })
      const facts = await ok(owner, 'GET', `${at(unit)}/files/facts?path=/root/streams/two`)
      expect(facts).toMatchObject({ type: 'file', bytes: letter.length, owner: 'root' })
      const read = await ok<Buffer>(owner, 'GET', `${at(unit)}/files/content?path=/root/streams/two`)
      expect(read.equals(letter)).toBe(true)
    },
  },
  {
    routes: ['GET /v1/units/{id}/files/watch'],
    call: async (owner, unit) => {
      const gone = new AbortController()
      const answer = await fetch(`${owner.berth.credentials.baseUrl}${at(unit)}/files/watch?path=/root`, {
        headers: { authorization: `Bearer ${owner.key}` },
        signal: gone.signal,
      })
      for await (const { event } of readEvents(answer)) {
        expect(event).toBe('ready')
        break
      }
      gone.abort()
    },
  },
  {
    routes: ['PATCH /v1/units/{id}'],
    call: async (owner, unit) =>
      expect(await ok(owner, 'PATCH', at(unit), { metadata: { letter: unit.id } })).toMatchObject({
        metadata: { letter: unit.id },
      }),
  },
  {
    routes: ['GET /v1/units/{id}/process-table', 'POST /v1/units/{id}/process-table/{pid}/signal'],
    call: async (owner, unit) => {
      const { processes } = await ok<ProcessTable>(owner, 'GET', `${at(unit)}/process-table`)
      expect(processes[0]).toMatchObject({ pid: 1 })
      await ok(owner, 'POST', `${at(unit)}/process-table/1/signal`, { signal: 'CONT' })
    },
  },
  {
    routes: ['GET /v1/units/{id}/archive', 'PUT /v1/units/{id}/archive'],
    call: async (owner, unit) => {
      const archive = await ok<Buffer>(owner, 'GET', `${at(unit)}/archive?path=/root/letters`)
      await ok(owner, 'PUT', `${at(unit)}/archive?path=/root/copies`, archive)
      expect((await run(owner, unit, ['cat', '/root/copies/two'])).stdout).toBe(`to ${unit.id}`)
    },
  },
  {
    routes: ['GET /v1/units/{id}/logs'],
    call: async (owner, unit) =>
      expect(JSON.stringify(await ok(owner, 'GET', `${at(unit)}/logs`))).toContain(`begun ${unit.name}`),
  },
  {
    routes: ['GET /v1/units/{id}/metrics', 'GET /v1/units/{id}/metrics/history'],
    call: async (owner, unit) => {
      expect(await ok(owner, 'GET', `${at(unit)}/metrics`)).toMatchObject({
        run: { memory: { usedBytes: expect.any(Number) }, network: { sentBytes: expect.any(Number) } },
      })
      const history = await ok(owner, 'GET', `${at(unit)}/metrics/history`)
      expect(history).toMatchObject({ points: expect.any(Array) })
    },
  },
  {
    routes: [
      'POST /v1/units/{id}/processes',
      'GET /v1/units/{id}/processes',
      'GET /v1/units/{id}/processes/{processId}',
      'GET /v1/units/{id}/processes/{processId}/output',
      'POST /v1/units/{id}/processes/{processId}/signal',
      'DELETE /v1/units/{id}/processes/{processId}',
    ],
    call: async (owner, unit) => {
      const processes = `${at(unit)}/processes`
      const { id } = await ok<Process>(owner, 'POST', processes, {
        cmd: ['sh', '-c', 'echo up; exec sleep 600'],
      })
      expect(JSON.stringify(await ok(owner, 'GET', processes))).toContain(id)
      const output = async () => JSON.stringify(await ok(owner, 'GET', `${processes}/${id}/output`))
      await eventually(async () => expect(await output()).toContain('up'), 20_000)
      await ok(owner, 'POST', `${processes}/${id}/signal`, { signal: 'KILL' })
      const read = async () => await ok<Process>(owner, 'GET', `${processes}/${id}`)
      await eventually(async () => expect(await read()).toMatchObject({ exitCode: 137 }), 20_000)
      await ok(owner, 'DELETE', `${processes}/${id}`)
    },
  },
  {
    routes: [
      'POST /v1/units/{id}/processes/{processId}/input',
      'POST /v1/units/{id}/processes/{processId}/keep-awake',
    ],
    call: async (owner, unit) => {
      const { id } = await ok<Process>(owner, 'POST', `${at(unit)}/processes`, {
        cmd: ['cat'],
        takesInput: true,
      })
      const process = `${at(unit)}/processes/${id}`
      expect(await ok(owner, 'POST', `${process}/keep-awake`, { forMs: 60_000 })).toMatchObject({
        awakeUntil: expect.any(String),
      })
      expect(await ok(owner, 'POST', `${process}/input`, { data: 'typed', end: true })).toEqual({ taken: 5 })
      const read = async () => await ok<Process>(owner, 'GET', process)
      await eventually(async () => expect(await read()).toMatchObject({ exitCode: 0 }), 20_000)
      await ok(owner, 'DELETE', process)
    },
  },
  {
    routes: ['POST /v1/units/{id}/calls'],
    call: async (owner, unit) => {
      const calls = [{ method: 'process/start', cmd: ['true'] }]
      await ok(owner, 'POST', `${at(unit)}/calls`, { calls })
    },
  },
  {
    // These units have no interpreter, which is asked in each of them.
    routes: [
      'POST /v1/units/{id}/code',
      'POST /v1/units/{id}/code/contexts',
      'GET /v1/units/{id}/code/contexts',
      'DELETE /v1/units/{id}/code/contexts/{contextId}',
      'POST /v1/units/{id}/code/contexts/{contextId}/interrupt',
      'POST /v1/units/{id}/code/contexts/{contextId}/restart',
    ],
    call: async (owner, unit) => {
      const contexts = `${at(unit)}/code/contexts`
      const one = `${contexts}/${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}`
      const asked: [method: string, path: string, body?: object][] = [
        ['POST', `${at(unit)}/code`, { code: '1' }],
        ['POST', contexts, { language: 'python' }],
        ['GET', contexts],
        ['DELETE', one],
        ['POST', `${one}/interrupt`],
        ['POST', `${one}/restart`],
      ]
      for (const [method, path, body] of asked)
        expect(await callAs(owner, method, path, body)).toMatchObject({
          status: 409,
          body: { error: { message: expect.stringContaining('has no code interpreter') } },
        })
    },
  },
  {
    routes: ['PUT /v1/units/{id}/secrets/{name}'],
    call: async (owner, unit) => {
      const asked = { value: 'another', hosts: ['api.example.com'] }
      expect((await callAs(owner, 'PUT', `${at(unit)}/secrets/NONE`, asked)).status).toBe(404)
    },
  },
  {
    routes: ['POST /v1/units/{id}/expose'],
    call: async (owner, unit) =>
      expect(
        (await ok<{ url: string }>(owner, 'POST', `${at(unit)}/expose`, { port: 8000, mode: 'public' })).url,
      ).toMatch(/^https:/),
  },
  {
    routes: [
      'PUT /v1/units/{id}/egress',
      'GET /v1/units/{id}/egress',
      'POST /v1/units/{id}/egress/check',
      'GET /v1/units/{id}/egress/log',
    ],
    call: async (owner, unit) => {
      const egress = `${at(unit)}/egress`
      await ok(owner, 'PUT', egress, { mode: 'listed', allow: ['example.com'] })
      expect(await ok(owner, 'GET', egress)).toMatchObject({ mode: 'listed' })
      const asked = { host: 'example.org', port: 443 }
      expect(await ok(owner, 'POST', `${egress}/check`, asked)).toMatchObject({ decision: 'refused' })
      await ok(owner, 'GET', `${egress}/log`)
      await ok(owner, 'PUT', egress, { mode: 'open' })
    },
  },
  {
    routes: ['POST /v1/units/{id}/sleep'],
    call: async (owner, unit) => {
      await ok(owner, 'POST', `${at(unit)}/sleep`, { sleep: '10m', now: true })
      await untilIn(owner, unit, 'sleeping')
      // A call for it wakes it.
      expect((await run(owner, unit, ['cat', '/root/copies/two'])).stdout).toBe(`to ${unit.id}`)
    },
  },
  {
    routes: ['POST /v1/units/{id}/stop', 'POST /v1/units/{id}/start'],
    call: async (owner, unit) => {
      await ok(owner, 'POST', `${at(unit)}/stop`)
      await untilIn(owner, unit, 'stopped')
      await ok(owner, 'POST', `${at(unit)}/start`)
      await untilIn(owner, unit, 'running')
    },
  },
  {
    routes: ['POST /v1/units/{id}/fork', 'DELETE /v1/units/{id}'],
    call: async (owner, unit) => {
      const { units } = await ok<ForkResult>(owner, 'POST', `${at(unit)}/fork`, {
        name: `${unit.name}-copy`,
        wait: true,
      })
      expect(units).toMatchObject([{ host: unit.host, state: 'running' }])
      const [copy] = units
      if (!copy) throw new Error('no copy')
      expect((await run(owner, copy, ['cat', '/root/copies/two'])).stdout).toBe(`to ${unit.id}`)
      await ok(owner, 'DELETE', at(copy))
    },
  },
]

/** Those of a stack, for one that exists: it is forked and its copy destroyed. */
export const stackCalls = {
  routes: ['GET /v1/stacks', 'GET /v1/stacks/{id}', 'POST /v1/stacks/{id}/fork', 'DELETE /v1/stacks/{id}'],
  call: async (owner: Owner, stackId: string): Promise<void> => {
    const stack = await ok<Stack>(owner, 'GET', `/v1/stacks/${stackId}`)
    const { stacks } = await ok<{ stacks: Stack[] }>(owner, 'GET', '/v1/stacks')
    expect(stacks.map(({ id }) => id)).toContain(stackId)
    const into = `${stack.name}-copy`
    const { units } = await ok<ForkResult>(owner, 'POST', `/v1/stacks/${stackId}/fork`, { into, wait: true })
    expect(units.map(({ host, state }) => [host, state])).toEqual(
      stack.units.map(({ host }) => [host, 'running']),
    )
    const copy = stackIdOf(units)
    expect(copy).not.toBe(stackId)
    await ok(owner, 'DELETE', `/v1/stacks/${copy}`)
  },
}

function stackIdOf(units: Unit[]): string {
  const [id = '', ...others] = new Set(units.map(({ stackId }) => stackId))
  expect(others).toEqual([])
  return id
}

const at = ({ id }: Unit) => `/v1/units/${id}`

async function ok<T>(owner: Owner, method: string, path: string, body?: unknown): Promise<T> {
  const answer = await callAs<T>(owner, method, path, body)
  if (answer.status !== 200 && answer.status !== 201)
    throw new Error(`${method} ${path} is answered ${answer.status}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

async function run(owner: Owner, unit: Unit, cmd: string[]): Promise<Exec> {
  return await ok<Exec>(owner, 'POST', `${at(unit)}/exec`, { cmd })
}

async function untilIn(owner: Owner, unit: Unit, state: string): Promise<void> {
  await eventually(
    async () => expect(await ok<Unit>(owner, 'GET', at(unit))).toMatchObject({ state }),
    60_000,
  )
}
