// What a Berth gives to its users, installed by the programs that they use: sh, npm and pip, in empty homes.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { project } from '../support/clients.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { hasPythonPackages, python } from '../support/python.ts'
import { type Service, startService } from '../support/service.ts'

const run = promisify(execFile)

let directory: string
let service: Service
let team: TestTeam
let homes = 0

// npm and pip take a while on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-downloads-'))
  service = await serving(join(directory, 'packages'))
  team = await makeTeam(service)
  const build = [join(project, 'scripts/build-packages.ts'), '--without-executable']
  await run(process.execPath, [...build, '--out', join(directory, 'packages')])
}, 120_000)
afterAll(async () => {
  await service.close()
  await rm(directory, { recursive: true })
})

/** The address that it tells of itself is the one at which it listens. */
async function serving(packages: string): Promise<Service> {
  const started = await startService({ packages, apiHosts: ['127.0.0.1'] })
  Object.assign(started.app.config, { publicUrl: started.baseUrl })
  return started
}

type Ran = { code: number; stdout: string; stderr: string }

/** Runs a line of shell in an empty home, with the programs of Debian alone and those of `path`. */
async function inEmptyHome(line: string, path: string[] = [], home = join(directory, `home-${homes++}`)) {
  await mkdir(home, { recursive: true })
  const PATH = [...path, '/usr/bin', '/bin'].join(':')
  const ended = await run('/bin/sh', ['-c', line], { cwd: home, env: { HOME: home, PATH } }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: Ran) => ({ code, stdout, stderr }),
  )
  return { home, ...ended }
}

/** A directory with this Node and nothing else. */
async function pathOfNode(): Promise<string> {
  const path = join(directory, 'node')
  await mkdir(path, { recursive: true })
  await symlink(process.execPath, join(path, 'node')).catch(() => {})
  return path
}

describe('the script at /install', () => {
  const install = () => `curl -fsS ${service.baseUrl}/install | sh`

  it('installs the CLI in JavaScript where there is a Node, and the CLI works right after', async () => {
    const node = await pathOfNode()
    const { home, code, stderr } = await inEmptyHome(install(), [node])
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(stderr).toContain(`berth 0.1.0 is installed: ${home}/.local/bin/berth`)
    expect(stderr).toContain(`export PATH="${home}/.local/bin:$PATH"`)
    expect(stderr).toContain(`berth login ${service.baseUrl}\n`)
    const path = [`${home}/.local/bin`, node]
    const signIn = `echo ${team.key} | berth login ${service.baseUrl} --key`
    expect(await inEmptyHome(signIn, path, home)).toMatchObject({ code: 0 })
    service.engine.onExec(() => ({ exitCode: 0, stdout: 'hi\n' }))
    const asked = 'berth run --rm berth.local/python:3.11 -- echo hi'
    expect(await inEmptyHome(asked, path, home)).toMatchObject({ code: 0, stdout: 'hi\n' })
  })

  it('installs over an installation that is there', async () => {
    const node = await pathOfNode()
    const { home } = await inEmptyHome(install(), [node])
    const path = [`${home}/.local/bin`, node]
    expect(await inEmptyHome(install(), path, home)).toMatchObject({ code: 0 })
    expect(await inEmptyHome('berth --version', path, home)).toMatchObject({ code: 0, stdout: '0.1.0\n' })
  })

  it('says what to install where there is neither a program for the system nor a Node', async () => {
    const bin = join(directory, 'few')
    await mkdir(bin)
    for (const name of [
      'sh',
      'curl',
      'uname',
      'mkdir',
      'mktemp',
      'rm',
      'sed',
      'gzip',
      'sha256sum',
      'chmod',
      'mv',
    ])
      await symlink(`/usr/bin/${name}`, join(bin, name))
    const home = join(directory, 'home-few')
    await mkdir(home)
    const line = `PATH=${bin}; curl -fsS ${service.baseUrl}/install | sh`
    const { code, stderr } = await inEmptyHome(line, [], home)
    expect(code).toBe(1)
    expect(stderr).toMatch(/^berth is not installed: .*install Node 22 or newer, then run this again\.$/m)
    await expect(readFile(join(home, '.local/bin/berth'))).rejects.toThrow('ENOENT')
  })

  it('is the same script for every address that asks, and names only the address of the service', async () => {
    const script = await (
      await service.fetch('GET', "/install?x='$(id)'", { headers: { 'x-forwarded-host': "a'b" } })
    ).text()
    expect(script).toContain(`url='${service.baseUrl}'`)
    expect(script).toBe(await (await service.fetch('GET', '/install')).text())
    expect(script).not.toMatch(/@[A-Z]+@/)
  })
})

describe('the script at /install, where the service has a program', () => {
  /** A service with this shell script in place of the program. */
  async function withProgram(script: string, sha256?: string) {
    const packages = join(directory, `packages-${homes++}`)
    const manifest = JSON.parse(await readFile(join(directory, 'packages/manifest.json'), 'utf8')) as {
      files: Record<string, object>
    }
    await mkdir(packages)
    for (const name of Object.keys(manifest.files))
      await symlink(join(directory, 'packages', name), join(packages, name))
    const name = `berth-linux-${process.arch}.gz`
    const content = gzipSync(script)
    await writeFile(join(packages, name), content)
    const facts = { bytes: content.length, sha256: sha256 ?? digestOf(content) }
    const files = { ...manifest.files, [name]: facts }
    await writeFile(join(packages, 'manifest.json'), JSON.stringify({ ...manifest, executable: name, files }))
    const other = await serving(packages)
    return { url: other.baseUrl, close: async () => await other.close() }
  }

  it('installs the program, which needs no Node', async () => {
    const { url, close } = await withProgram('#!/bin/sh\necho 0.1.0\n')
    const { home, code } = await inEmptyHome(`curl -fsS ${url}/install | sh`)
    expect(code).toBe(0)
    const ran = await inEmptyHome('berth --version', [`${home}/.local/bin`], home)
    expect(ran).toMatchObject({ code: 0, stdout: '0.1.0\n' })
    await close()
  })

  it('installs the CLI in JavaScript where the program does not run', async () => {
    const { url, close } = await withProgram('#!/nowhere/at/all\n')
    const node = await pathOfNode()
    const { home, code } = await inEmptyHome(`wget -qO- ${url}/install | sh`, [node])
    expect(code).toBe(0)
    const ran = await inEmptyHome('berth --version', [`${home}/.local/bin`, node], home)
    expect(ran).toMatchObject({ code: 0, stdout: '0.1.0\n' })
    await close()
  })

  it('installs nothing where the program is not the one that the script names', async () => {
    const { url, close } = await withProgram('#!/bin/sh\necho 0.1.0\n', '0'.repeat(64))
    const { home, code, stderr } = await inEmptyHome(`curl -fsS ${url}/install | sh`)
    expect(code).toBe(1)
    expect(stderr).toContain('is not the file that this script was made for')
    expect(await run('ls', ['-A', join(home, '.local/bin')])).toMatchObject({ stdout: '' })
    await close()
  })
})

describe('the packages below /packages', () => {
  it('are as their list of checksums says, and are sent once', async () => {
    const line = `curl -fsS ${service.baseUrl}/packages/SHA256SUMS >sums && for name in $(sed 's/.* //' sums); do curl -fsSO ${service.baseUrl}/packages/$name; done; sha256sum --check sums`
    const { code, stdout } = await inEmptyHome(line)
    expect({ code, lines: stdout.match(/: OK$/gm) }).toEqual({ code: 0, lines: Array(3).fill(': OK') })
    const first = await service.fetch('GET', '/packages/berth-sdk.tgz')
    const etag = first.headers.get('etag') ?? ''
    const again = await service.fetch('GET', '/packages/berth-sdk.tgz', {
      headers: { 'if-none-match': etag },
    })
    expect([again.status, await again.text()]).toEqual([304, ''])
  })

  it('can be installed by npm, and the program then runs', async () => {
    const { home, code, stderr } = await inEmptyHome(
      `npm install --no-audit --no-fund ${service.baseUrl}/packages/berth-sdk.tgz`,
      [dirname(process.execPath)],
    )
    expect({ code, stderr }).toMatchObject({ code: 0 })
    await writeFile(
      join(home, 'first.mjs'),
      `import { Berth } from '@berth/sdk'\nconsole.log((await new Berth().quota()).units.live)\n`,
    )
    const asked = `BERTH_URL=${service.baseUrl} BERTH_API_KEY=${team.key} node first.mjs`
    expect(await inEmptyHome(asked, [await pathOfNode()], home)).toMatchObject({ code: 0, stdout: '0\n' })
  })

  it.skipIf(!hasPythonPackages('httpx', 'venv'))(
    'can be installed by pip, by its URL and from the index',
    async () => {
      const wheel = `${service.baseUrl}/packages/berth_sdk-0.1.0-py3-none-any.whl`
      const index = `--index-url ${service.baseUrl}/packages/simple/ berth-sdk`
      const pip = '.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall'
      const { home } = await inEmptyHome(`${python} -m venv --system-site-packages .venv`)
      for (const what of [wheel, index]) {
        expect(await inEmptyHome(`${pip} ${what}`, [], home)).toMatchObject({ code: 0 })
        const program = 'from berth import Berth; print(Berth().quota()["units"]["live"])'
        const asked = `BERTH_URL=${service.baseUrl} BERTH_API_KEY=${team.key} .venv/bin/python -c '${program}'`
        expect(await inEmptyHome(asked, [], home)).toMatchObject({ code: 0, stdout: '0\n' })
      }
    },
  )

  it('have an index that leads to PyPI for every other name, and refuses what is no name', async () => {
    const at = async (path: string) => {
      const { status, headers } = await service.fetch('GET', `/packages/simple/${path}`)
      return [status, headers.get('location')]
    }
    expect(await at('HTTPX2/')).toEqual([302, 'https://pypi.org/simple/httpx2/'])
    expect(await at('Berth.SDK')).toEqual([302, '/packages/simple/berth-sdk/'])
    expect(await at('-/')).toEqual([404, null])
    expect(await at('a%0d%0ab/')).toEqual([404, null])
    const accept = 'application/vnd.pypi.simple.v1+json'
    const json = await service.fetch('GET', '/packages/simple/berth-sdk/', { headers: { accept } })
    expect(json.headers.get('content-type')).toBe(accept)
    expect(await json.json()).toMatchObject({
      meta: { 'api-version': '1.0' },
      name: 'berth-sdk',
      files: [{ filename: 'berth_sdk-0.1.0-py3-none-any.whl', 'requires-python': '>=3.10' }],
    })
  })

  it('are not there where none are built, and the answer says who builds them', async () => {
    const other = await serving(join(directory, 'nothing'))
    expect(await other.call('GET', '/install')).toMatchObject({
      status: 404,
      body: { error: { message: expect.stringContaining('npm run build:packages') as string } },
    })
    await other.close()
  })

  it.each(['/packages/manifest.json', '/packages/..%2f..%2fpackage.json', '/packages/%2e%2e/package.json'])(
    'are the listed files alone: %s is not found',
    async (path) => expect((await service.fetch('GET', path)).status).toBe(404),
  )
})

const digestOf = (content: Buffer) => createHash('sha256').update(content).digest('hex')
