// The worker of Claude Managed Agents in real units of both classes: the vendor's own library from the image, begun as the
// controller begins it, for a session with a memory store and a skill. The control plane is of the test's own, by the vendor's name.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClaudeQueue } from '../../packages/agents/src/claude.ts'
import { isolationClasses, type MachineRef } from '../../src/engine/engine.ts'
import { type ManagedAgents, startManagedAgents } from '../support/managed-agents.ts'
import { remember, SKILL_TEXT } from '../support/managed-memory.ts'
import { processesHolding } from '../support/unit-memory.ts'
import { openVendorHosts, type VendorHosts } from './vendor-hosts.ts'

const VENDOR = 'api.anthropic.com'
const STORE = 'memstore_1'
const MOUNT = '/mnt/memory/notes'
const SIZE = { cpus: 2, memoryMb: 2048, pids: 1024, diskGb: 4 }

let agents: ManagedAgents
let vendors: VendorHosts
let host: VendorHosts['host']
let directory: string
let imageDigest: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'claude-worker-'))
  agents = await startManagedAgents()
  vendors = await openVendorHosts({ address: '127.66.0.3', hosts: { [VENDOR]: agents.listener }, directory })
  host = vendors.host
  imageDigest = (await host.engine().pull('berth.local/agent:1')).digest
}, 1_200_000)
afterAll(async () => {
  await vendors?.close()
  await agents?.close()
  await rm(directory, { recursive: true })
}, 120_000)

/** The vendor by its own name, as the controller reaches it. */
const byName: typeof fetch = async (input, init) => {
  const url = new URL(input instanceof Request ? input.url : input)
  return await fetch(url.host === VENDOR ? `${agents.url}${url.pathname}${url.search}` : input, init)
}

async function said(ref: MachineRef, argv: string[], env: Record<string, string> = {}) {
  let text = ''
  const request = { argv, env, stdin: null, timeoutMs: 240_000 }
  const { exitCode } = await host.engine().exec(ref, request, ({ data }) => void (text += data.toString()))
  return { text, exitCode }
}

/** A session whose work was claimed, and a machine for it with its placeholder, as the service makes one. */
async function claimed(isolation: (typeof isolationClasses)[number]) {
  const session = agents.begin({
    resources: [{ type: 'memory_store', memory_store_id: STORE, mount_path: MOUNT }],
    skills: [{ type: 'anthropic', skill_id: 'skill_1', version: '1' }],
  })
  const queue = await createClaudeQueue({
    environmentId: agents.environment,
    environmentKey: agents.key,
    workerId: 'of-the-test',
    idleMs: 3000,
    fetch: byName,
  })
  const signal = AbortSignal.timeout(240_000)
  const item = await queue.poll(signal)
  if (item === null) throw new Error('the queue is empty')
  const { worker, lacks } = await queue.session(session.id, item, signal)
  expect(lacks).toEqual([])
  const { brokered, token } = worker ?? {}
  if (!worker || !brokered?.placeholder || !token) throw new Error('the session has no worker')
  const { variable, placeholder, hosts, methods = [], paths = [] } = brokered
  const ref = { id: `unit_worker${isolation}`, generation: 1 }
  await host.engine().create({
    id: ref.id,
    imageDigest,
    isolation,
    size: SIZE,
    volume: null,
    networkGroup: 1,
  })
  await host.engine().start(ref, {
    hostname: 'unit',
    entrypoint: null,
    cmd: ['sleep', 'infinity'],
    env: { [variable]: placeholder },
    files: [],
    searchDomain: 'stack.internal',
    egress: {
      mode: 'listed',
      allow: hosts,
      siblings: 'none',
      stack: null,
      secrets: [{ name: variable, placeholder, value: token, hosts, methods, paths }],
    },
  })
  await queue.accept(item, signal)
  return { session, worker, ref, token, item }
}

describe.each(isolationClasses)('in a unit of class %s, the worker of a session', (isolation) => {
  it('has its memory and its skill, runs its calls, writes back what it remembers, and never has its token', async () => {
    agents.stores.clear()
    remember(agents.stores, STORE, '/before.md', 'known before\n')
    const { session, worker, ref, token, item } = await claimed(isolation)
    try {
      const working = said(ref, [...worker.cmd], worker.env)
      working.catch(() => {})
      const call = async (command: string) => await agents.call(session, { name: 'bash', input: { command } })
      const read = await call(
        `hostname; cat ${MOUNT}/before.md; find /workspace -name SKILL.md -exec cat {} +`,
      )
      expect(read).toEqual({ isError: false, text: expect.stringContaining('unit\nknown before\n') })
      expect(read.text).toContain(SKILL_TEXT.trim())
      const written = await agents.call(session, {
        name: 'write',
        input: { file_path: `${MOUNT}/after.md`, content: 'learned\n' },
      })
      expect(written.isError, written.text).toBe(false)
      expect(await processesHolding(ref.id, token)).toEqual([])
      expect(await processesHolding(ref.id, worker.brokered?.placeholder ?? '')).not.toEqual([])

      const asked = `curl -s -H "authorization: Bearer $ANTHROPIC_SESSION_TOKEN" https://${VENDOR}/v1/sessions/sesn_of_another`
      expect((await said(ref, ['bash', '-c', asked])).text).toContain('secret_refused')

      agents.endTurn(session)
      expect(await working).toMatchObject({ exitCode: 0 })
      const kept = [...(agents.stores.get(STORE)?.values() ?? [])].map(({ path, content }) => [path, content])
      expect(Object.fromEntries(kept)).toEqual({ '/after.md': 'learned\n', '/before.md': 'known before\n' })
      expect(agents.items.find(({ id }) => id === item.id)?.state).toBe('stopped')
      expect(agents.faults).toEqual([])
    } finally {
      await host.engine().destroy(ref.id)
    }
  }, 300_000)
})
