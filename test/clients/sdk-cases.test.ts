// What all our client libraries have in common: the table cases.json, which packages/python/tests uses as well.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { Berth, type BerthOptions, errorCodes, type Fetch } from '../../packages/sdk/src/index.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

type Cases = {
  errors: { status: number; body: string; code: string }[]
  retries: { call: string; status: number | null; retryAfter?: string; attempts: number }[]
  events: { chunks: string[]; events: [string, unknown, string | null][] }[]
  settings: {
    env: Record<string, string>
    options: BerthOptions
    file?: boolean
    sent?: string
    says?: string
  }[]
  commands: {
    command: string | string[]
    stdin?: string
    env?: Record<string, string>
    cwd?: string
    result: object
  }[]
  words: string[]
}
const cases = JSON.parse(await readFile(new URL('cases.json', import.meta.url), 'utf8')) as Cases

const place = { url: 'https://berth.example', apiKey: 'k' }
const answering = (status: number, body: string, headers: Record<string, string> = {}) =>
  new Response(body, { status, headers })

it.each(cases.errors)(
  'the response $status $body becomes an error with its code',
  async ({ status, body, code }) => {
    const berth = new Berth({
      ...place,
      retries: 0,
      fetch: async () => answering(status, body, { 'x-request-id': 'r1' }),
    })
    await expect(berth.quota()).rejects.toMatchObject({ code, status, requestId: 'r1' })
  },
)

it('the error codes in the table are those of the service plus one unknown code', () => {
  const known: readonly string[] = errorCodes
  expect(cases.errors.filter(({ code }) => !known.includes(code)).map(({ code }) => code)).toEqual([
    'of_tomorrow',
  ])
})

it.each(cases.retries)('a $call that fails with $status is sent $attempts times', async (each) => {
  const made = '{"units":[{"id":"unit_1","name":"one","state":"running"}],"outputs":{},"costLine":""}'
  const trouble = () => {
    if (each.status === null) throw new TypeError('fetch failed')
    return answering(each.status, '{}', { 'retry-after': each.retryAfter ?? '0' })
  }
  let [isHealthy, attempts] = [true, 0]
  const through: Fetch = async () => {
    attempts += 1
    return isHealthy ? answering(200, made) : trouble()
  }
  const berth = new Berth({ ...place, fetch: through })
  const unit = await berth.units.create('an/image')
  const calls: Record<string, () => Promise<unknown>> = {
    read: () => berth.quota(),
    destroy: () => unit.destroy(),
    write: () => unit.files.write('/x', 'x'),
    create: () => berth.units.create('an/image'),
    exec: () => unit.exec(['true']),
    stop: () => unit.stop(),
  }
  isHealthy = false
  attempts = 0
  await expect(calls[each.call]?.()).rejects.toThrow()
  expect(attempts).toBe(each.attempts)
})

it.each(cases.events)('events are parsed for any split into chunks: $chunks', async ({ chunks, events }) => {
  const bytes = new TextEncoder().encode(chunks.join(''))
  const cuts = [
    chunks.map((chunk) => new TextEncoder().encode(chunk)),
    [...bytes].map((byte) => Uint8Array.of(byte)),
  ]
  for (const cut of cuts) {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (const chunk of cut) controller.enqueue(chunk)
        controller.close()
      },
    })
    const berth = new Berth({ ...place, fetch: async () => new Response(body) })
    const seen: unknown[] = []
    for await (const { event, data } of berth.events()) seen.push([event, data])
    expect(seen).toEqual(events.map(([event, data]) => [event, data]))
  }
})

describe('the service URL and API key', () => {
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-cases-'))
    const told = { baseUrl: 'http://127.0.0.1:7070', apiKey: 'berth_live_file' }
    await writeFile(join(directory, 'credentials.json'), JSON.stringify(told))
  })
  afterAll(async () => await rm(directory, { recursive: true }))
  afterEach(() => vi.unstubAllEnvs())

  it.each(cases.settings)('are found for $env and $options', async ({ env, options, file, sent, says }) => {
    const all = { BERTH_DATA_DIR: file ? directory : '/nowhere', BERTH_URL: '', BERTH_API_KEY: '', ...env }
    for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value)
    const calls: string[] = []
    const fetch: Fetch = async (url, init) => {
      calls.push(`${new Headers(init.headers).get('authorization')} to ${url}`)
      return answering(200, '{}')
    }
    if (says !== undefined) return expect(() => new Berth({ ...options, fetch })).toThrow(says)
    await new Berth({ ...options, fetch }).quota()
    expect(calls).toEqual([sent])
  })
})

describe('a command', () => {
  let service: Service
  let team: TestTeam
  beforeAll(async () => {
    service = await startService()
    team = await makeTeam(service)
  })
  afterAll(async () => await service.close())

  it('returns its output and exit code, and interpolated values are quoted as single words', async () => {
    const berth = new Berth({ url: service.baseUrl, apiKey: team.key })
    await using unit = await berth.units.create('node:22')
    for (const { command, result, ...options } of cases.commands)
      expect(await unit.exec(command, options)).toMatchObject(result)
    for (const word of cases.words) expect((await unit.sh`echo -n ${word}`).stdout).toBe(word)
  })
})
