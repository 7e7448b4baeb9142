// The official client with a domain and TLS: its host names lead through the gateway, in HTTP/1.1 and 2.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { freePort } from '../../src/lib/free-port.ts'
import { baseEnvironment } from '../support/berth.ts'
import { createSandbox } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'

const tls = await freePort('127.0.0.1')
const berth = useBerth({ BERTH_ISOLATION: 'gvisor', BERTH_GATEWAY_TLS: `127.0.0.1:${tls}` })
const project = fileURLToPath(new URL('../..', import.meta.url))
const program = fileURLToPath(new URL('../support/e2b-domain-main.ts', import.meta.url))

beforeAll(async () => {
  // The first sandbox of an image is refused until the image is built.
  await (await createSandbox(berth)).kill()
})

const run = promisify(execFile)

it("the examples of the library's README run as they are written there", async () => {
  const readme = await readFile(new URL('../../node_modules/e2b/README.md', import.meta.url), 'utf8')
  const examples = [...readme.matchAll(/```ts\n([^]*?)```/g)].map(([, text = '']) => text)
  const own = examples.filter((text) => text.includes("from 'e2b'"))
  expect(own).toHaveLength(2)
  const directory = await mkdtemp(join(project, 'node_modules/.e2b-readme-'))
  onTestFinished(async () => await rm(directory, { recursive: true }))
  const { apiKey, caFile } = berth.credentials
  const domain = `berth.localhost:${tls}`
  const env = { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: caFile ?? '', E2B_DOMAIN: domain }
  const printed: string[] = []
  for (const [at, text] of own.entries()) {
    const file = join(directory, `${at}.mjs`)
    await writeFile(file, text.replaceAll('e2b_***', apiKey).replaceAll('e2b.dev', domain))
    const settings = { ...env, E2B_API_KEY: apiKey, E2B_VALIDATE_API_KEY: 'false' }
    printed.push((await run(process.execPath, [file], { env: settings })).stdout)
  }
  expect(printed).toEqual(['Hello from E2B!\n\n', ''])
  type Units = { units: { metadata: Record<string, string> }[] }
  const { body } = await berth.call<Units>('GET', '/v1/units?stack=sandbox-volumes')
  expect(body.units.map(({ metadata }) => metadata)).toEqual([{ volumeName: 'my-volume' }])
  const { body: kept } = await berth.call<{ secrets: { name: string }[] }>('GET', '/v1/secrets')
  expect(kept.secrets.map(({ name }) => name)).toEqual(['openai-api-key'])
})

it('a program reaches its sandbox, its ports and its files by the names below the domain', async () => {
  const { apiKey, caFile } = berth.credentials
  const printed = await run('npm', ['run', '--silent', 'sign-in', '--', '--key'], {
    cwd: project,
    env: baseEnvironment(berth.dataDir),
  })
  const [key, spelled = ''] = printed.stdout.trim().split('\n')
  expect([key, spelled]).toEqual([apiKey, expect.stringMatching(/^e2b_[0-9a-f]+$/)])
  const { stdout } = await run(process.execPath, [program], {
    env: {
      PATH: process.env.PATH,
      NODE_EXTRA_CA_CERTS: caFile ?? '',
      E2B_DOMAIN: `berth.localhost:${tls}`,
      E2B_API_KEY: spelled,
    },
  })
  const met: unknown = JSON.parse(stdout)
  expect(met).toMatchObject({
    stdout: 'there\n',
    closed: [502, expect.stringContaining('port is not open')],
    opened: [200, 'served'],
    alones: [
      [200, 'served'],
      [200, 'served'],
    ],
    ended: [502, expect.stringContaining('port is not open')],
    downloaded: 'served',
    forged: 401,
    uploaded: 200,
    read: 'uploaded',
    ports: [404, 404],
    paused: [502, expect.stringContaining('paused')],
    stillPaused: 'paused',
    resumed: [200, 'served'],
    gone: [502, expect.stringContaining('not found')],
    isRunning: false,
    seen: {
      shown: [200, 'mine.example:3000'],
      refused: 403,
      woken: [200, 'mine.example:3000'],
      state: 'running',
      hasTime: true,
      again: 'again\n',
    },
  })
})
