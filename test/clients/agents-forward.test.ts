// `berth agents forward` against a service with an engine in memory. In place of Codex is a program that tells how it was started;
// Codex itself is in test/engine/coding-agents.deep.test.ts.

import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import type { AuditEvent } from '../../src/contract/audit.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { runCli, startCli, useCli } from '../support/clients.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'

const setup = useCli()
const KEY = 'sk-env-of-one-environment'
let team: TestTeam

beforeEach(async () => {
  team = await makeTeam(setup.service)
  setup.service.engine.onExec(() => ({ exitCode: 0 }))
  await writeFile(at('key'), `${KEY}\n`, { mode: 0o600 })
  await rm(at('told'), { force: true })
})

const at = (name: string) => join(setup.directory, name)
const env = () => ({ BERTH_URL: setup.service.baseUrl, BERTH_API_KEY: team.key, HOME: setup.directory })

async function argsOf(script: string, ...more: string[]): Promise<string[]> {
  await writeFile(at('codex'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const options = { environment: 'env_1', remote: 'https://relay.example.com/v1', codex: at('codex') }
  const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
  return ['agents', 'forward', ...words, '--key-file', at('key'), ...more]
}

const units = async () =>
  (await setup.service.call<{ units: Unit[] }>('GET', '/v1/units', { key: team.key })).body.units
const told = async () => await readFile(at('told'), 'utf8').catch(() => '')

it('an environment works in a unit of its own, and its key is in the input of the forwarder alone', async () => {
  const script = `read -r key; { echo "$key"; env; echo "$*"; } >${at('told')}; exit 6`
  const { code, stdout, stderr } = await runCli(setup.program, await argsOf(script), env())
  expect(code, stderr).toBe(6)
  const [unit, ...others] = await units()
  expect(others).toEqual([])
  expect(unit).toMatchObject({
    image: 'berth.local/agent:1',
    egress: { mode: 'listed', allow: ['preset:npm'], siblings: 'none' },
    endpoints: [{ port: 4512, mode: 'private' }],
    metadata: { 'berth.agents': 'codex', 'berth.environment': 'env_1' },
  })
  const [key, ...rest] = (await told()).split('\n')
  expect(key).toBe(KEY)
  const url = unit?.endpoints[0]?.url.replace(/^http/, 'ws') ?? ''
  // By a door on this machine, which logs the calls.
  expect(rest.join('\n')).toMatch(
    /exec-server forward --remote https:\/\/relay\.example\.com\/v1 --environment-id env_1 --connect ws:\/\/127\.0\.0\.1:\d+\/\S+ --registration-bearer-stdin/,
  )
  expect(rest.join('\n')).not.toContain(url)
  for (const text of [rest.join('\n'), stdout, stderr, JSON.stringify(unit)]) expect(text).not.toContain(KEY)
})

it('what it passes to the unit is in the audit log, with session and command, and without what is secret', async () => {
  const unit = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(unit, 'listening')
  const start = {
    argv: ['bash', '-lc', 'deploy --token hidden-value'],
    metadata: { threadId: '01a22a22-fc67' },
    env: { KEY: 'hidden-value' },
  }
  const calls = [
    { id: 1, method: 'process/start', params: start },
    { id: 2, method: 'fs/readFile', params: { path: 'file:///workspace/a' } },
    { id: 3, method: 'fs/readFile', params: { path: 'file:///workspace/a' } },
  ]
  const codex = `const socket = new WebSocket(process.argv.at(process.argv.indexOf('--connect') + 1))
    socket.onopen = () => { for (const call of ${JSON.stringify(calls)}) socket.send(JSON.stringify(call)); socket.close() }
    socket.onclose = () => process.exit(0)`
  await writeFile(at('codex.mjs'), codex)
  // The address of the unit's private link is this one.
  const { port } = unit.address() as AddressInfo
  const there = `import http from 'node:http'
    import https from 'node:https'
    import { syncBuiltinESMExports } from 'node:module'
    https.request = (url, options) => http.request(url.replace(/^https:..[^/]+/, 'http://127.0.0.1:${port}'), options)
    syncBuiltinESMExports()`
  await writeFile(at('there.mjs'), there)
  try {
    const args = await argsOf(`exec ${process.execPath} ${at('codex.mjs')} "$@"`)
    const { code, stderr } = await runCli(setup.program, args, {
      ...env(),
      NODE_OPTIONS: `--import ${at('there.mjs')}`,
    })
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('fs/readFile ×2')
    const { body } = await setup.service.call<{ events: AuditEvent[] }>(
      'GET',
      '/v1/audit?action=unit.calls',
      { key: team.key },
    )
    expect(body.events).toMatchObject([
      {
        target: (await units())[0]?.id,
        userAgent: expect.stringContaining('codex/env_1'),
        input: {
          calls: [
            {
              method: 'process/start',
              count: 1,
              cmd: ['bash', '-lc', 'deploy --token ***'],
              session: '01a22a22-fc67',
            },
            { method: 'fs/readFile', count: 2, path: '/workspace/a' },
          ],
        },
      },
    ])
    expect(JSON.stringify(body) + stderr).not.toContain('hidden-value')
  } finally {
    unit.close()
  }
})

it('a forwarder that is started again finds the unit of its environment', async () => {
  await runCli(setup.program, await argsOf('exit 0'), env())
  const [first] = await units()
  expect((await runCli(setup.program, await argsOf('exit 0'), env())).code).toBe(0)
  expect((await units()).map(({ id }) => id)).toEqual([first?.id])
  expect((await runCli(setup.program, await argsOf('exit 0', '--rm'), env())).code).toBe(0)
  expect(await units()).toEqual([])
})

it('a signal ends the forwarder, and one that is killed closes its input', async () => {
  const script = `echo $$ >${at('told')}; cat >/dev/null; echo closed >>${at('told')}`
  const ended = startCli(setup.program, await argsOf(`echo begun >${at('told')}; exec sleep 60`), env())
  await expect.poll(told).toBe('begun\n')
  ended.child.kill('SIGTERM')
  expect((await ended.end()).code).not.toBe(0)
  await rm(at('told'))
  const killed = startCli(setup.program, await argsOf(script), env())
  await expect.poll(told).toMatch(/^\d+\n$/)
  killed.child.kill('SIGKILL')
  await expect.poll(told).toContain('closed')
})

it('what is missing is said in a sentence', async () => {
  const none = await runCli(setup.program, [...(await argsOf('exit 0')), '--codex', at('nothing')], env())
  expect(none.stderr).toContain('npm install --global @openai/codex')
  expect(none.code).toBe(1)
  expect((await runCli(setup.program, ['agents', 'forward', '--environment', 'env_1'], env())).code).toBe(2)
  await writeFile(at('key'), 'two\nlines\n')
  expect((await runCli(setup.program, await argsOf('exit 0'), env())).stderr).toContain('is not one line')
})
