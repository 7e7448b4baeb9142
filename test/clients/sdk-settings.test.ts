// Where the SDK finds the URL of the service and the API key.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { Berth, type BerthOptions } from '../../packages/sdk/src/index.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-sdk-'))
  const credentials = {
    baseUrl: 'http://127.0.0.1:7070',
    apiKey: 'berth_live_file',
    signInUrl: '',
    caFile: null,
  }
  await writeFile(join(directory, 'credentials.json'), JSON.stringify(credentials))
})
afterAll(async () => await rm(directory, { recursive: true }))
beforeEach(() => {
  vi.unstubAllEnvs()
  vi.stubEnv('BERTH_DATA_DIR', '/nowhere')
  vi.stubEnv('BERTH_URL', '')
  vi.stubEnv('BERTH_API_KEY', '')
})
afterAll(() => vi.unstubAllEnvs())

/** Returns the key and URL of the first request. */
async function placeOf(options: BerthOptions = {}): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const berth = new Berth({
    ...options,
    fetch: async (url, init) => {
      resolve(`${new Headers(init.headers).get('authorization')} to ${url}`)
      return new Response('{}')
    },
  })
  await berth.quota()
  return await promise
}

it('options override environment variables, which override the operator’s credentials file', async () => {
  vi.stubEnv('BERTH_DATA_DIR', directory)
  expect(await placeOf()).toBe('Bearer berth_live_file to http://127.0.0.1:7070/v1/quota')
  vi.stubEnv('BERTH_URL', 'https://berth.example/')
  vi.stubEnv('BERTH_API_KEY', 'berth_live_env')
  expect(await placeOf()).toBe('Bearer berth_live_env to https://berth.example/v1/quota')
  expect(await placeOf({ url: 'https://given.example', apiKey: 'given' })).toBe(
    'Bearer given to https://given.example/v1/quota',
  )
})

it('the API key can be a function that is called for each request', async () => {
  expect(await placeOf({ url: 'https://given.example', apiKey: async () => 'fresh' })).toBe(
    'Bearer fresh to https://given.example/v1/quota',
  )
})

it('the key of the credentials file is not sent to another service', () => {
  vi.stubEnv('BERTH_DATA_DIR', directory)
  expect(() => new Berth({ url: 'https://stranger.example' })).toThrow('Set BERTH_API_KEY')
})

it.each<[string, BerthOptions, string]>([
  ['nothing is set', {}, 'Set BERTH_URL'],
  ['there is no key', { url: 'https://berth.example' }, 'Set BERTH_API_KEY'],
  ['the URL is invalid', { url: 'berth.example', apiKey: 'a' }, 'is no URL of a service'],
  ['the key contains a line break', { url: 'https://berth.example', apiKey: 'a\nb' }, 'copied whole'],
])('the constructor explains what to do when %s', (_what, options, message) => {
  expect(() => new Berth(options)).toThrow(message)
})
