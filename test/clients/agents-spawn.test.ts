// `berth agents spawn`, as a controller starts it for each claim, against a service with an engine in memory.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { type Cli, runCli, startCli, useCli } from '../support/clients.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'

const setup = useCli()
let team: TestTeam

beforeEach(async () => {
  team = await makeTeam(setup.service, { maxConcurrentUnits: 1 })
})

const env = () => ({ BERTH_URL: setup.service.baseUrl, BERTH_API_KEY: team.key, HOME: setup.directory })
const argsOf = (options: string[], cmd: string[], session = 'ses_1') => {
  const fixed = ['--session', session, '--image', 'node:22', '--sleep', '10m']
  return ['agents', 'spawn', ...fixed, ...options, '--', ...cmd]
}
const hook = async (options: string[], ...cmd: string[]) =>
  await runCli(setup.program, argsOf(options, cmd), env())
const startHook = (...cmd: string[]): Cli => startCli(setup.program, argsOf([], cmd), env())
const units = async () =>
  (await setup.service.call<{ units: Unit[] }>('GET', '/v1/units', { key: team.key })).body.units
const processes = async () => {
  const [unit] = await units()
  const path = `/v1/units/${unit?.id}/processes`
  const { body } = await setup.service.call<{ processes: { state: string; exitCode: number | null }[] }>(
    'GET',
    path,
    { key: team.key },
  )
  return body.processes
}
const tokenFile = async (token: string) => {
  const path = join(setup.directory, 'token')
  await writeFile(path, token, { mode: 0o600 })
  return path
}

it('a claim runs its worker in a unit that then sleeps, and the next claim of the session wakes it with its disk', async () => {
  const first = await hook([], 'sh', '-c', 'echo kept > /kept; echo out; echo err >&2; exit 7')
  expect(first).toMatchObject({ code: 7, stdout: 'out\n' })
  expect(first.stderr).toContain('err\n')
  const [unit, ...others] = await units()
  expect(others).toEqual([])
  expect(unit).toMatchObject({
    state: 'sleeping',
    egress: { mode: 'none', siblings: 'none' },
    metadata: { 'berth.agents': 'spawn', 'berth.environment': 'default', 'berth.session': 'ses_1' },
  })
  expect(await hook([], 'cat', '/kept')).toMatchObject({ code: 0, stdout: 'kept\n' })
  expect((await units()).map(({ id, state }) => [id, state])).toEqual([[unit?.id, 'sleeping']])
})

it('with --rm the unit goes when its worker has ended, and the same claim has another one', async () => {
  for (let count = 0; count < 2; count += 1) {
    const { code } = await hook(['--rm'], 'sh', '-c', 'test -f /kept && exit 3; echo x > /kept')
    expect(code).toBe(0)
    expect(await units()).toEqual([])
  }
})

it('the session and the variables of the claim are in the worker’s environment', async () => {
  const { stdout } = await hook(['--env', 'WAKE=1'], 'sh', '-c', 'printenv WAKE; printenv BERTH_SESSION')
  expect(stdout).toBe('1\nses_1\n')
})

it('a controller is told by the exit code that there is no room, and by another that the call is wrong', async () => {
  expect(await hook([], 'true')).toMatchObject({ code: 0 })
  // One unit of the team is there, and runs.
  const running = startHook('sleep', 'infinity')
  await expect.poll(async () => (await units())[0]?.state).toBe('running')
  const full = await runCli(setup.program, argsOf([], ['true'], 'ses_2'), env())
  expect(full.code, full.stderr).toBe(75)
  running.child.kill('SIGTERM')
  await running.end()
  expect((await runCli(setup.program, argsOf([], ['true'], 'a b'), env())).code).toBe(2)
  expect((await hook([])).code).toBe(2)
  expect((await hook(['--token-env', 'TOKEN'], 'true')).code).toBe(2)
  expect((await hook(['--token-file', '/nowhere'], 'true')).code).toBe(125)
  expect(
    (await runCli(setup.program, argsOf([], ['true']), { ...env(), BERTH_API_KEY: 'berth_live_x' })).code,
  ).toBe(4)
})

it('a worker is ended with the call that the controller ends, and its unit sleeps', async () => {
  const running = startHook('sleep', 'infinity')
  await expect.poll(running.stderr).toContain('has begun')
  running.child.kill('SIGTERM')
  expect((await running.end()).code).toBe(143)
  expect(await processes()).toMatchObject([{ state: 'exited' }])
  expect((await units())[0]?.state).toBe('sleeping')
})

it('a worker whose call was killed is taken up by the next call of the same claim, and runs once', async () => {
  const killed = startHook('sh', '-c', 'echo begun; sleep 4; exit 3')
  await expect.poll(killed.stdout).toBe('begun\n')
  killed.child.kill('SIGKILL')
  await killed.end()
  const next = await hook([], 'sh', '-c', 'echo begun; sleep 4; exit 3')
  expect(next).toMatchObject({ code: 3, stdout: '' })
  expect(await processes()).toHaveLength(1)
})

it('a token with a host is a placeholder in the unit, and is replaced by that of the next claim', async () => {
  const allow = [
    '--egress',
    'api.example.com',
    '--token-env',
    'SESSION_TOKEN',
    '--token-host',
    'api.example.com',
  ]
  const placeholders: string[] = []
  for (const token of ['tok-the-first-one', 'tok-the-second-one']) {
    const { code, stdout, stderr } = await hook(
      [...allow, '--token-file', await tokenFile(token)],
      'printenv',
      'SESSION_TOKEN',
    )
    expect(code, stderr).toBe(0)
    placeholders.push(stdout)
    const [unit] = await units()
    const secrets = setup.service.engine.egressOf(unit?.id ?? '')?.secrets
    expect(secrets).toMatchObject([{ name: 'SESSION_TOKEN', value: token, hosts: ['api.example.com'] }])
    expect(stderr).not.toContain(token)
  }
  expect(placeholders[0]).toMatch(/^berth_secret_/)
  expect(placeholders[1]).toBe(placeholders[0])
  expect(await readFile(join(setup.directory, 'token'), 'utf8')).toBe('tok-the-second-one')
})

it('a worker of an earlier claim, with another token, is ended before that of the next one begins', async () => {
  const allow = ['--egress', 'api.example.com', '--token-env', 'TOKEN', '--token-host', 'api.example.com']
  const first = startCli(
    setup.program,
    argsOf([...allow, '--token-file', await tokenFile('tok-the-first-one')], ['sleep', 'infinity']),
    env(),
  )
  await expect.poll(first.stderr).toContain('has begun')
  first.child.kill('SIGKILL')
  await first.end()
  const second = await hook([...allow, '--token-file', await tokenFile('tok-the-second-one')], 'echo', 'on')
  expect(second).toMatchObject({ code: 0, stdout: 'on\n' })
  expect((await processes()).map(({ state }) => state)).toEqual(['exited', 'exited'])
})
