// `berth agents serve` as a program beside the whole product: the vendor's own library between a control plane of ours and real
// units of both classes.

import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { createUnit, exec, listUnits } from '../support/berth-units.ts'
import { buildCli, type Cli, project, startCli } from '../support/clients.ts'
import { type ManagedAgents, startManagedAgents } from '../support/managed-agents.ts'
import { processesHolding } from '../support/unit-memory.ts'
import { usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth(null)
let agents: ManagedAgents
let directory: string
let program: string
const controllers: Cli[] = []

beforeAll(async () => {
  agents = await startManagedAgents()
  directory = await mkdtemp(join(tmpdir(), 'hosted-agents-'))
  program = await buildCli(join(directory, 'dist'))
  // As where both are installed.
  await symlink(join(project, 'node_modules'), join(directory, 'node_modules'))
  await writeFile(join(directory, 'key'), `${agents.key}\n`, { mode: 0o600 })
})
afterAll(async () => {
  await Promise.all(controllers.map(async (cli) => await end(cli, 'SIGTERM')))
  await agents.close()
  await rm(directory, { recursive: true })
  expect(agents.faults).toEqual([])
})

function serve(...more: string[]): Cli {
  const { baseUrl, apiKey } = berth.credentials
  const options = Object.entries({
    environment: agents.environment,
    'key-file': join(directory, 'key'),
    image: 'berth.local/debian:12',
    'vendor-url': agents.url,
    'turn-idle': '1',
  }).flatMap(([name, value]) => [`--${name}`, value])
  const cli = startCli(program, ['agents', 'serve', ...options, ...more], {
    BERTH_URL: baseUrl,
    BERTH_API_KEY: apiKey,
    HOME: directory,
  })
  controllers.push(cli)
  return cli
}

async function end(cli: Cli, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (cli.child.exitCode !== null || cli.child.signalCode !== null) return
  const ended = cli.end()
  cli.child.kill(signal)
  await ended
}

const bash = (command: string) => ({ name: 'bash', input: { command } })

describe.each(usualClasses)('with %s, a session', (isolation) => {
  let cli: Cli
  let unit: Unit
  let session: ReturnType<ManagedAgents['begin']>
  const call = async (asked: Parameters<ManagedAgents['call']>[1]) => await agents.call(session, asked)
  const say = async (command: string) => (await call(bash(command))).text

  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
    cli = serve()
    session = agents.begin({ metadata: { 'berth.size': 'nano' } })
    expect(await say('echo first'), cli.stderr()).toBe('first')
    const [made] = await listUnits(berth)
    if (!made) throw new Error('no unit')
    unit = made
    expect(unit).toMatchObject({ size: 'nano', egress: { mode: 'none', siblings: 'none' } })
  })

  it('keeps directory, variables and functions from one command to the next, and its exit codes', async () => {
    await say('mkdir -p deep/er && cd deep/er && export A="x y" && hello() { echo "hello $1 in $PWD"; }')
    expect(await say('hello "$A"')).toBe('hello x y in /workspace/deep/er')
    expect(await call(bash('echo to the end; exit 7'))).toEqual({ text: 'to the end', isError: true })
    expect(await say('pwd; echo out; echo err >&2')).toBe('/workspace/deep/er\nout\nerr')
    await call({ name: 'bash', input: { restart: true } })
    expect(await say('pwd; echo "[$A]"')).toBe('/workspace\n[]')
  })

  it('ends a command that takes too long, and goes on after it', async () => {
    const late = await call({ name: 'bash', input: { command: 'echo begun; sleep 60', timeout_ms: 1500 } })
    expect(late).toMatchObject({ isError: true, text: expect.stringMatching(/begun[^]*1500 ms/) })
    expect(await say('echo on')).toBe('on')
  })

  it('writes, edits, finds and reads files', async () => {
    await call({ name: 'write', input: { file_path: 'src/a.txt', content: 'one\ntwo\nthree\n' } })
    const edit = { file_path: 'src/a.txt', old_string: 'two', new_string: '2' }
    expect((await call({ name: 'edit', input: edit })).isError).toBe(false)
    expect(await say('cat src/a.txt')).toBe('one\n2\nthree')
    const range = { file_path: 'src/a.txt', view_range: [2, 3] }
    expect((await call({ name: 'read', input: range })).text).toBe('2\nthree')
    expect((await call({ name: 'glob', input: { pattern: '**/*.txt' } })).text).toBe('src/a.txt')
    expect((await call({ name: 'grep', input: { pattern: '^thr', path: 'src' } })).text).toBe(
      './a.txt:3:three',
    )
  })

  it('leaves no credential of the vendor in its unit', async () => {
    const look =
      'env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; cat /var/tmp/* /tmp/* /workspace/* 2>/dev/null'
    const { stdout } = await exec(berth, unit, ['sh', '-c', look])
    expect(stdout).toContain('PATH=')
    for (const secret of [agents.key, ...agents.items.map(({ token }) => token ?? '')])
      expect(stdout).not.toContain(secret)
    expect(stdout).not.toMatch(/sk-ant|tok-work/)
    for (const secret of [agents.key, ...agents.items.map(({ token }) => token ?? '')])
      expect(await processesHolding(unit.id, secret)).toEqual([])
    // Where it would be found.
    const kept = exec(berth, unit, ['sh', '-c', 'K="$(echo yromem-ni-tpek | rev)"; sleep 5; : "$K"'])
    await expect.poll(async () => await processesHolding(unit.id, 'kept-in-memory')).not.toEqual([])
    await kept
  })

  it('goes on after its controller was killed in the middle of a command, which runs once', async () => {
    const answered = say('echo ran >>/workspace/count; sleep 4; echo done')
    const count = async () => (await exec(berth, unit, ['cat', '/workspace/count'])).stdout
    await expect.poll(count).toBe('ran\n')
    await end(cli, 'SIGKILL')
    cli = serve()
    expect(await answered).toBe('done')
    expect(await count()).toBe('ran\n')
    expect(await listUnits(berth)).toHaveLength(1)
  })

  it('is found again by its next work, and its unit is destroyed when it ends', async () => {
    agents.endTurn(session)
    await expect.poll(() => agents.items.at(-1)?.state).toBe('stopped')
    agents.queue(session)
    expect(await say('cat /workspace/count')).toBe('ran')
    agents.terminate(session)
    await expect.poll(async () => await listUnits(berth)).toEqual([])
    await end(cli, 'SIGTERM')
  })

  it('is a copy of the unit that was prepared, where its controller was told so', async () => {
    const prepared = await createUnit(berth, {
      name: 'prepared',
      image: 'berth.local/debian:12',
      size: 'nano',
    })
    await exec(berth, prepared, ['sh', '-c', 'mkdir -p /workspace && echo ready >/workspace/made'])
    await end(cli, 'SIGTERM')
    const copying = serve('--copy-of', 'prepared')
    session = agents.begin()
    expect(await say('cat made; echo and mine >>made; cat made'), copying.stderr()).toBe(
      'ready\nready\nand mine',
    )
    expect((await exec(berth, prepared, ['cat', '/workspace/made'])).stdout).toBe('ready\n')
    agents.terminate(session)
    const isThere = async () =>
      (await listUnits(berth)).some(({ metadata }) => metadata['berth.session'] === session.id)
    await expect.poll(isThere).toBe(false)
    await end(copying, 'SIGTERM')
    await berth.call('DELETE', `/v1/units/${prepared.id}`)
  })
})
