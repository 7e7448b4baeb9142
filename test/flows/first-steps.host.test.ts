// The first hour of a new user: start, the API key, and a program that is written into a unit and run there.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { buildCli, project } from '../support/clients.ts'
import { useBerth } from '../support/use-berth.ts'

const run = promisify(execFile)
const berth = useBerth({}, { isEmpty: true })

describe('npm start', () => {
  it('prints the base URL, the sign-in link, the path of the key and the isolation class with its reason', () => {
    const { baseUrl, signInUrl } = berth.credentials
    expect(berth.output).toContain(`API          ${baseUrl}`)
    expect(berth.output).toContain(signInUrl)
    expect(berth.output).toContain(join(berth.dataDir, 'credentials.json'))
    expect(berth.output).toMatch(/Isolation {4}(gvisor|runc): \S+/)
  })

  it('stores the credentials for root only and does not print the API key', async () => {
    const { mode, uid } = await stat(join(berth.dataDir, 'credentials.json'))
    expect([mode & 0o777, uid]).toEqual([0o600, 0])
    expect(berth.credentials.caFile).toBe(`${berth.dataDir}/ca/ca.crt`)
    expect(berth.output).not.toContain(berth.credentials.apiKey)
  })

  it('prints a link that signs a person in', async () => {
    const response = await fetch(berth.credentials.signInUrl, { redirect: 'manual' })
    expect(response.status).toBeLessThan(400)
  })

  it('serves an API that responds with 401 to a caller without a key', async () => {
    const response = await fetch(`${berth.credentials.baseUrl}/v1/units`)
    expect(response.status).toBe(401)
  })
})

describe('a Python script in a unit', () => {
  it('can be written and run, and its output can be read with a matching SHA-256', async () => {
    const unit = await createUnit(berth, { name: 'py', image: 'berth.local/python:3.11' })
    const script = [
      'import hashlib',
      'data = bytes(range(256)) * 1000',
      'open("/root/out.bin", "wb").write(data)',
      'print(hashlib.sha256(data).hexdigest())',
    ].join('\n')
    const files = `/v1/units/${unit.id}/files`
    const contentBase64 = Buffer.from(script).toString('base64')
    const written = await berth.call('POST', files, { path: '/root/make.py', contentBase64 })
    expect(written).toMatchObject({
      status: 200,
      body: {
        path: '/root/make.py',
        bytes: script.length,
        sha256: sha256(Buffer.from(script)),
        verified: true,
      },
    })

    const run = await exec(berth, unit, ['python3', '/root/make.py'])
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })

    const read = await berth.call<{ contentBase64: string }>('GET', `${files}?path=/root/out.bin`)
    expect(sha256(Buffer.from(read.body.contentBase64, 'base64'))).toBe(run.stdout.trim())
  })
})

describe('the quick start from a terminal', () => {
  it('makes a page that answers at its URL, and on this machine without TLS', {
    timeout: 600_000,
  }, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-first-steps-'))
    const program = await buildCli(join(directory, 'cli'))
    const page = await readFile(join(project, 'docs/quick-start.md'), 'utf8')
    const [, block = ''] = /## From a terminal\n[^]*?```sh run\n([^]*?)```/.exec(page) ?? []
    const { baseUrl, apiKey, caFile } = berth.credentials
    const env = { PATH: '/usr/bin:/bin', HOME: directory, BERTH_URL: baseUrl, BERTH_API_KEY: apiKey }
    const script = `set -e\nberth() { '${process.execPath}' '${program}' "$@"; }\n${block}`
    const { stdout } = await run('bash', ['-c', script], { cwd: directory, env })
    const url = /^https:\S+$/m.exec(stdout)?.[0] ?? ''
    const curl = async (...args: string[]) => (await run('curl', ['-sSf', ...args])).stdout
    expect(await curl('--cacert', caFile ?? '', url)).toBe('Hello from a unit\n')
    const port = /on this machine http:\/\/NAME\.berth\.localhost:(\d+)/.exec(berth.output)?.[1]
    expect(await curl(`http://${new URL(url).hostname}:${port}/`)).toBe('Hello from a unit\n')
    await rm(directory, { recursive: true })
  })
})

describe('PostgreSQL in a unit', () => {
  it('responds to a query by exec and by name from another unit', async () => {
    const database = await createUnit(
      berth,
      {
        name: 'db',
        image: 'berth.local/postgres:15',
        size: 'medium',
        ports: [5432],
        env: { POSTGRES_PASSWORD: 'not-secret' },
      },
      'shop',
    )
    const psql = (unit: Unit, host: string) =>
      exec(berth, unit, [
        'psql',
        `postgresql://postgres:not-secret@${host}/postgres`,
        '--tuples-only',
        '--no-align',
        '--command=select 6 * 7',
      ])
    await eventually(async () => expect((await psql(database, 'localhost')).stdout).toBe('42\n'), 60_000)

    const client = await createUnit(
      berth,
      { name: 'client', image: 'berth.local/postgres:15', cmd: ['sleep', 'infinity'], entrypoint: [] },
      'shop',
    )
    for (const host of ['db', 'db.shop.internal', database.internalHost]) {
      expect(await psql(client, host)).toMatchObject({ stdout: '42\n', stderr: '' })
    }
  })
})

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
