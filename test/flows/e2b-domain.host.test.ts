// The official client with a domain and TLS: its host names lead through the gateway, in HTTP/1.1 and 2.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, expect, it } from 'vitest'
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

it('a program reaches its sandbox, its ports and its files by the names below the domain', async () => {
  const { apiKey, caFile } = berth.credentials
  const printed = await promisify(execFile)('npm', ['run', '--silent', 'sign-in', '--', '--key'], {
    cwd: project,
    env: baseEnvironment(berth.dataDir),
  })
  const [key, spelled = ''] = printed.stdout.trim().split('\n')
  expect([key, spelled]).toEqual([apiKey, expect.stringMatching(/^e2b_[0-9a-f]+$/)])
  const { stdout } = await promisify(execFile)(process.execPath, [program], {
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
