// The recipes for coding agents in real units of both classes, with the agents' real programs from npm: each takes a turn with a
// model of the test's own and runs a command. The machine is what the recipe says; the egress process is this one. What holds a
// real key is looked for in the middle of the turn, when the agent has just used it.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { codex as relayed } from '../../packages/agents/src/codex.ts'
import type { RelayCall } from '../../packages/agents/src/relay.ts'
import { openDoor } from '../../packages/agents/src/relay-door.ts'
import { findRecipe } from '../../src/domain/recipes/catalog.ts'
import type { BrokeredSecret } from '../../src/engine/egress.ts'
import { type IsolationClass, isolationClasses, type MachineRef } from '../../src/engine/engine.ts'
import { run } from '../../src/lib/process.ts'
import { createFakeModels, createFakeRepository, LAST_WORDS } from '../support/fake-models.ts'
import { installCodex, startCodex, takeTurn } from '../support/codex.ts'
import { type CodexRelay, startCodexRelay } from '../support/codex-relay.ts'
import { processesHolding } from '../support/unit-memory.ts'
import { openVendorHosts, type VendorHosts } from './vendor-hosts.ts'

const REGISTRY = 'registry.npmjs.org'
const GIT_HOST = 'git.example.com'
const TOKEN = 'ghp-the-real-token-of-this-test'
const KEY = 'sk-the-real-key-of-this-test'
const RELAY_HOST = 'relay.example.com'
const REPOSITORY_PATH = '/some/thing.git'
const SIZE = { cpus: 2, memoryMb: 2048, pids: 1024, diskGb: 4 }
const WITH_INSTALLATION_MS = 600_000

const agents = [
  {
    recipe: 'claude-code',
    variable: 'ANTHROPIC_API_KEY',
    host: 'api.anthropic.com',
    turn: 'claude -p "Try it." --dangerously-skip-permissions',
    sent: KEY,
  },
  {
    recipe: 'codex',
    variable: 'OPENAI_API_KEY',
    host: 'api.openai.com',
    turn: 'codex exec --skip-git-repo-check "Try it."',
    sent: `Bearer ${KEY}`,
  },
]

const models = createFakeModels()
let relayOfUnits: CodexRelay
let vendors: VendorHosts
let host: VendorHosts['host']
let directory: string
let imageDigest: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coding-agents-'))
  const repository = await createFakeRepository(directory, { path: REPOSITORY_PATH, token: TOKEN })
  relayOfUnits = await startCodexRelay(`wss://${RELAY_HOST}`)
  const hosts = [
    [GIT_HOST, repository] as const,
    [RELAY_HOST, relayOfUnits.listener] as const,
    ...agents.map((each) => [each.host, models.answer] as const),
  ]
  vendors = await openVendorHosts({
    address: '127.66.0.2',
    hosts: Object.fromEntries(hosts),
    upgrades: { [RELAY_HOST]: relayOfUnits.onUpgrade },
    elsewhere: [REGISTRY],
    directory,
  })
  host = vendors.host
  imageDigest = (await host.engine().pull('berth.local/agent:1')).digest
}, 1_200_000)
afterAll(async () => {
  await vendors?.close()
  await relayOfUnits?.close()
  await rm(directory, { recursive: true })
}, 120_000)

/** The machine that a recipe's create makes, with placeholders as the service makes them, once it is ready. */
async function started(
  recipe: string,
  isolation: IsolationClass,
  given: Record<string, unknown>,
): Promise<MachineRef> {
  const found = findRecipe(recipe)
  const params = found.parse({
    ...given,
    repository: `https://${GIT_HOST}${REPOSITORY_PATH}`,
    repositoryToken: { value: TOKEN },
  })
  const [unit] = found.make({ name: recipe, stackName: recipe, params, secrets: {} }).units
  // With a secret its connections are verified by this process, which knows the authorities of this host.
  const registry = {
    name: 'NPM',
    placeholder: 'berth_secret_of_the_registry',
    value: 'unused',
    hosts: [REGISTRY],
  }
  const secrets: BrokeredSecret[] = [registry]
  const env: Record<string, string> = {}
  for (const [name, entry] of Object.entries(unit?.spec.env ?? {})) {
    if (typeof entry === 'string') {
      env[name] = entry
      continue
    }
    if (!('value' in entry) || entry.value === undefined) throw new Error(`${name} has no value`)
    const { value, hosts = [], methods = [], paths = [] } = entry
    env[name] = `berth_secret_for_${name}`
    secrets.push({ name, placeholder: env[name], value, hosts, methods, paths })
  }
  const id = `unit_${recipe.replace('-', '')}${isolation}`
  await host.engine().create({ id, imageDigest, isolation, size: SIZE, volume: null, networkGroup: 1 })
  const ref = { id, generation: 1 }
  await host.engine().start(ref, {
    hostname: 'unit',
    entrypoint: null,
    cmd: unit?.spec.cmd ?? [],
    env,
    files: [],
    searchDomain: 'stack.internal',
    egress: {
      mode: 'listed',
      allow: [...new Set(secrets.flatMap(({ hosts }) => hosts))],
      siblings: 'none',
      stack: null,
      secrets,
    },
  })
  const probe = { argv: unit?.spec.healthcheck?.cmd ?? [], stdin: null, timeoutMs: 10_000 }
  for (;;) {
    const machine = (await host.engine().list()).find((each) => each.id === id)
    // As when the registry is away: the recipe's first process says so and ends.
    if (machine?.state !== 'running') throw new Error(`the machine of ${recipe} is ${machine?.state}`)
    if ((await host.engine().exec(ref, probe, () => {})).exitCode === 0) break
    await new Promise((resolve) => setTimeout(resolve, 2000))
  }
  return ref
}

async function said(ref: MachineRef, script: string): Promise<string> {
  let text = ''
  const request = { argv: ['bash', '-c', script], stdin: null, timeoutMs: 180_000 }
  await host.engine().exec(ref, request, ({ data }) => void (text += data.toString()))
  return text
}

/** Who has a text of this machine: processes of its own and of its sandbox, and files of the installation. */
async function holding(ref: MachineRef, text: string): Promise<string[]> {
  const places = ['pool', 'machines'].map((name) => join(host.options.dataDir, name))
  const files = await run('grep', ['-rlaF', '--', text, ...places], { timeoutMs: 120_000 })
  const processes = await processesHolding(ref.id, text)
  return [...processes.map((pid) => `process ${pid}`), ...files.stdout.split('\n').filter(Boolean)]
}

describe.each(isolationClasses)('in a unit of class %s', (isolation) => {
  describe.each(agents)('$recipe', ({ recipe, variable, host: modelHost, turn, sent }) => {
    let ref: MachineRef
    beforeAll(async () => {
      ref = await started(recipe, isolation, { key: { value: KEY } })
    }, WITH_INSTALLATION_MS)
    afterAll(async () => await host.engine().destroy(ref.id))

    it('clones the repository with the token', async () => {
      expect(await said(ref, 'git -C /workspace/thing log --format=%s')).toBe('The first commit\n')
    })

    it('runs a command for its model, and neither key is anywhere in its unit meanwhile', async () => {
      models.command = 'echo "made in $(hostname)" | tee /workspace/made'
      const found: Record<string, string[]> = {}
      models.calls.length = 0
      models.beforeLast = async () => {
        models.beforeLast = async () => {}
        for (const text of [KEY, TOKEN, `berth_secret_for_${variable}`])
          found[text] = await holding(ref, text)
      }
      const told = await said(ref, `cd /workspace/thing && ${turn} </dev/null`)
      expect(told).toContain(LAST_WORDS)
      expect(await said(ref, 'cat /workspace/made')).toBe('made in unit\n')
      const asked = models.calls.filter(({ body }) => body !== '')
      expect(asked.length).toBeGreaterThanOrEqual(2)
      for (const call of asked) expect(call).toMatchObject({ host: modelHost, key: sent })
      expect(asked.at(-1)?.body).toContain('made in unit')
      expect(found[`berth_secret_for_${variable}`]).not.toEqual([])
      expect([found[KEY], found[TOKEN]]).toEqual([[], []])
    }, 240_000)

    it('has its key refused for any other call', async () => {
      models.calls.length = 0
      const url = `https://${modelHost}/v1/organizations/api_keys`
      expect(await said(ref, `curl -s -H "x-api-key: $${variable}" ${url}`)).toContain('secret_refused')
      expect(models.calls).toEqual([])
    })

    it('has neither key in what its processes are given, nor in its files', async () => {
      const script =
        "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; cat /root/.claude.json /root/.codex/auth.json 2>/dev/null"
      const text = await said(ref, script)
      expect(text).toContain(`berth_secret_for_${variable}`)
      for (const value of [KEY, TOKEN]) expect(text).not.toContain(value)
    })
  })

  describe('the executor for a Codex elsewhere', () => {
    let ref: MachineRef
    let codex: string
    let url: string
    beforeAll(async () => {
      ;[ref, codex] = await Promise.all([
        started('codex-executor', isolation, {}),
        installCodex(join(directory, 'installed')),
      ])
      const machine = (await host.engine().list()).find(({ id }) => id === ref.id)
      url = `ws://${machine?.address}:4512`
    }, WITH_INSTALLATION_MS)
    afterAll(async () => await host.engine().destroy(ref.id))

    it('runs the commands of one on a laptop, whose key is not in the unit', async () => {
      models.command = 'echo "made in $(hostname)" | tee /workspace/made'
      const environment = ['default = "berth"', 'include_local = false', '[[environments]]', 'id = "berth"']
      const environments = [...environment, `url = "${url}"`, ''].join('\n')
      const told = await takeTurn(codex, { directory, models, key: KEY, environments })
      expect(told).toContain(LAST_WORDS)
      expect(await said(ref, 'cat /workspace/made')).toBe('made in unit\n')
      expect(await holding(ref, KEY)).toEqual([])
    }, 120_000)

    it('runs the commands of one behind a relay, by a process outside that alone has the environment’s key', async () => {
      const relay = await startCodexRelay()
      const told: RelayCall[] = []
      const door = await openDoor(url, { ...relayed, onCall: (call) => void told.push(call) })
      const forward = startCodex(codex, {
        args: `exec-server forward --remote ${relay.url} --environment-id env_1 --connect ${door.url} --registration-bearer-stdin`.split(
          ' ',
        ),
        home: join(directory, 'forward'),
        stdin: `${relay.keys.executor}\n`,
      })
      try {
        await expect.poll(relay.connected, { timeout: 30_000 }).toEqual(['env_1'])
        models.command = 'echo "relayed to $(hostname)" | tee /workspace/relayed'
        const turn = await takeTurn(codex, { directory, models, key: KEY, relay: { relay, id: 'env_1' } })
        expect(turn).toContain(LAST_WORDS)
        // What the audit log gets of it.
        expect(told).toContainEqual({
          method: 'process/start',
          cmd: expect.arrayContaining([models.command]),
          session: expect.any(String),
        })
        expect(await said(ref, 'cat /workspace/relayed')).toBe('relayed to unit\n')
        expect(relay.copied().includes('relayed to unit')).toBe(false)
        for (const key of [KEY, relay.keys.executor, relay.keys.harness])
          expect(await holding(ref, key)).toEqual([])
      } finally {
        forward.kill('SIGKILL')
        await door.close()
        await relay.close()
      }
    }, 120_000)

    it('has no way to the vendor', async () => {
      for (const name of ['api.openai.com', 'codex-cloud-environments.chatgpt.com'])
        expect(await said(ref, `curl -sS -m 5 https://${name}/ 2>&1 || true`)).not.toContain('{}')
    })
  })

  it(
    'one that registers itself runs the commands of a session, and its key is not in the unit',
    async () => {
      const relay = relayOfUnits
      const environment = `env_${isolation}`
      const given = { remote: `https://${RELAY_HOST}`, environment, key: { value: relay.keys.executor } }
      const [ref, codex] = await Promise.all([
        started('codex-environment', isolation, given),
        installCodex(join(directory, 'installed')),
      ])
      try {
        await expect.poll(relay.connected, { timeout: 60_000 }).toContain(environment)
        models.command = 'echo "registered by $(hostname)" | tee /workspace/registered'
        const told = await takeTurn(codex, { directory, models, key: KEY, relay: { relay, id: environment } })
        expect(told).toContain(LAST_WORDS)
        expect(await said(ref, 'cat /workspace/registered')).toBe('registered by unit\n')
        for (const key of [KEY, relay.keys.executor, relay.keys.harness])
          expect(await holding(ref, key)).toEqual([])
        const another = `curl -s -X POST -H "authorization: Bearer $CODEX_ENVIRONMENT_KEY" https://${RELAY_HOST}/cloud/environment/env_of_another/register`
        expect(await said(ref, another)).toContain('secret_refused')
      } finally {
        await host.engine().destroy(ref.id)
      }
    },
    WITH_INSTALLATION_MS,
  )
})
