// Every method of the official library of E2B for Python, by its plain classes and its async ones, with a domain and TLS on real
// units.

import { join } from 'node:path'
import { readFile } from 'node:fs/promises'
import { beforeAll, expect, it } from 'vitest'
import { freePort } from '../../src/lib/free-port.ts'
import { project } from '../support/clients.ts'
import { createSandbox } from '../support/e2b.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const program = join(project, 'test/frameworks/e2b/methods.py')
const tls = await freePort('127.0.0.1')
const berth = useBerth({
  BERTH_ISOLATION: 'gvisor',
  BERTH_GATEWAY_TLS: `127.0.0.1:${tls}`,
  BERTH_RATE_CREATIONS: '300',
  BERTH_RATE_EXECS: '2000',
  BERTH_RATE_REQUESTS: '5000',
})
const python = useFrameworkPython('e2b', { atLeast: '3.11', extra: null })

beforeAll(async () => {
  // The first sandbox of an image is refused until the image is built.
  await (await createSandbox(berth)).kill()
})

const env = () => ({
  E2B_DOMAIN: `berth.localhost:${tls}`,
  E2B_API_KEY: berth.credentials.apiKey,
  E2B_VALIDATE_API_KEY: 'false',
  SSL_CERT_FILE: berth.credentials.caFile ?? '',
})

it.each(['sync', 'async'])('the %s classes do what they do elsewhere', async (kind) => {
  const met: unknown = JSON.parse(await python.run([program, kind], { env: env() }))
  expect(met).toEqual({
    commands: {
      result: ['out\n', 'err\n', 0],
      printed: ['err\n', 'out\n'],
      typed: 'typed\n',
      streamed: 'one\ntwo\n',
      listed: true,
      attached: 'CommandExitException',
      killed: [true, false],
      places: '/tmp\nroot\nb\n',
      refused: [
        'CommandExitException',
        'TimeoutException',
        'AuthenticationException',
        'NotFoundException',
        'NotFoundException',
      ],
    },
    terminals: {
      shown: [true, true],
      ended: 'CommandExitException',
      killed: [true, true, false],
    },
    files: {
      written: ['/home/user/notes/one', 'one', ['/home/user/two', '/home/user/notes/three']],
      read: ['eins', 'zwei', 'zwei'],
      info: [
        4,
        420,
        '-rw-r--r--',
        'user',
        'file',
        {
          author: 'Ann',
        },
      ],
      made: [true, false],
      listed: ['/home/user/made/below'],
      renamed: '/home/user/made/moved',
      exists: [false, true],
      watched: [
        ['create', 'below/new'],
        ['write', 'below/new'],
      ],
      refused: [
        'FileNotFoundException',
        'InvalidArgumentException',
        'FileNotFoundException',
        'FileNotFoundException',
        'FileNotFoundException',
        'FileNotFoundException',
        'InvalidArgumentException',
        'AuthenticationException',
      ],
      removed: false,
    },
    repositories: {
      before: [true, false],
      after: true,
      branches: [['main', 'other'], 'main'],
      remote: '/home/user/origin.git',
      config: 'false',
      content: 'one',
      refused: 'CommandExitException',
    },
    life: {
      info: ['base', true, 'running'],
      longer: true,
      listed: true,
      metrics: [true, true],
      snapshots: 2,
      forks: ['before', 'before'],
      copies: ['before', 'before'],
      paused: [true, false, false],
      refused: ['SandboxNotRunningException', 'SandboxNotRunningException'],
      kept: 'before',
      host: true,
      urls: [true, true],
      deleted: [true, true, false],
      ended: [true, false, false],
      gone: [
        'SandboxNotRunningException',
        'SandboxNotFoundException',
        'SandboxNotRunningException',
        'SandboxNotFoundException',
      ],
    },
    others: {
      volume: ['text', ['/a', '/made'], [4, 384], true],
      missing: [false, 'VolumePathNotFoundException'],
      destroyed: [true, false],
      secrets: [['openai-api-key'], [true, 'openai-api-key'], true, false],
    },
  })
})

const NAMES = `
import inspect, json
from e2b import Sandbox, Template, Volume, Secret
from e2b.sandbox_sync.filesystem.filesystem import Filesystem
from e2b.sandbox_sync.commands.command import Commands
from e2b.sandbox_sync.commands.pty import Pty
from e2b.sandbox_sync.git import Git
owners = [Sandbox, Filesystem, Commands, Pty, Git, Volume, Secret]
found = {name for owner in owners for name, value in inspect.getmembers(owner, callable) if not name.startswith('_')}
print(json.dumps(sorted(found)))
`
/** Of other names, of the library alone, and of what the guide says is not here yet. */
const others = ['beta_pause', 'fill', 'iam_token', 'get_mcp_token', 'get_mcp_url']

it('the program calls every method of them', async () => {
  const names = JSON.parse(await python.run(['-c', NAMES])) as string[]
  const text = await readFile(program, 'utf8')
  expect(names.length).toBeGreaterThan(50)
  const untried = names.filter((name) => !text.includes(`.${name}(`) && !others.includes(name))
  expect(untried).toEqual([])
})
