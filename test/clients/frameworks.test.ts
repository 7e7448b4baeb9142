// The examples for agent frameworks, each with the real framework, a fake model, and units of the real service.

import { run, setTracingDisabled } from '@openai/agents-core'
import { SandboxAgent, shell } from '@openai/agents-core/sandbox'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents-core/testing'
import { fakeModel } from '@langchain/core/testing'
import { generateText, isStepCount } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { berth as provider } from '../../packages/sdk/src/adapters/computesdk.ts'
import { unitTools as toolsOfAiSdk } from '../../packages/sdk/src/adapters/ai.ts'
import { unitSession } from '../../packages/sdk/src/adapters/openai-agents.ts'
import { unitTools as toolsOfLangChain } from '../../examples/langchain/tools.ts'
import { Berth } from '../../packages/sdk/src/index.ts'
import { makeTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const IMAGE = 'node:22'
let service: Service
let account: { url: string; apiKey: string }
let berth: Berth
beforeAll(async () => {
  service = await startService()
  account = { url: service.baseUrl, apiKey: (await makeTeam(service)).key }
  berth = new Berth(account)
})
afterAll(async () => await service.close())

describe('the ComputeSDK provider', () => {
  it('creates, finds, describes, lists and destroys sandboxes', async () => {
    const { sandbox } = provider({ ...account, image: IMAGE })
    expect(await sandbox.list()).toEqual([])
    const made = await sandbox.create({ name: 'box', envs: { COLOUR: 'blue' } })
    expect((await sandbox.getById(made.sandboxId))?.sandboxId).toBe(made.sandboxId)
    expect((await sandbox.list()).map(({ sandboxId }) => sandboxId)).toEqual([made.sandboxId])
    expect(await made.getInfo()).toMatchObject({
      id: made.sandboxId,
      provider: 'berth',
      status: 'running',
      metadata: { name: 'box', image: IMAGE },
    })
    expect(await made.runCommand('printenv COLOUR')).toMatchObject({ stdout: 'blue\n', exitCode: 0 })
    expect(await made.getUrl({ port: 8080 })).toMatch(/^https?:/)
    await made.destroy()
    expect(await sandbox.getById(made.sandboxId)).toBeNull()
  })

  it('runs commands with a directory and environment, in the background and with streamed output', async () => {
    const { sandbox } = provider({ ...account, image: IMAGE })
    const made = await sandbox.create()
    expect(await made.runCommand('pwd', { cwd: '/tmp', env: { A: '1' } })).toMatchObject({ stdout: '/tmp\n' })
    expect(await made.runCommand('echo no >&2; exit 3')).toMatchObject({ stderr: 'no\n', exitCode: 3 })
    expect(await made.runCommand('sleep 60', { background: true })).toMatchObject({ exitCode: 0 })
    const pieces: string[] = []
    const ended = await made.runCommand('echo one; echo two', { onStdout: (text) => pieces.push(text) })
    expect(ended).toMatchObject({ stdout: 'one\ntwo\n', exitCode: 0 })
    expect(pieces.join('')).toBe('one\ntwo\n')
    await made.destroy()
  })

  it('writes, reads, lists and removes files', async () => {
    const { sandbox } = provider({ ...account, image: IMAGE })
    const { filesystem, destroy } = await sandbox.create().then((made) => ({
      filesystem: made.filesystem,
      destroy: async () => await made.destroy(),
    }))
    await filesystem.mkdir('/app')
    await filesystem.writeFile('/app/a file.txt', 'hello')
    expect(await filesystem.readFile('/app/a file.txt')).toBe('hello')
    expect(await filesystem.readdir('/app')).toMatchObject([{ name: 'a file.txt', type: 'file', size: 5 }])
    await filesystem.remove('/app/a file.txt')
    await expect(filesystem.readFile('/app/a file.txt')).rejects.toThrow(/file/)
    await destroy()
  })

  it('creates snapshots and starts sandboxes from them', async () => {
    const { sandbox, snapshot } = provider({ ...account, image: IMAGE })
    if (!snapshot) throw new Error('the provider has no snapshots')
    const made = await sandbox.create()
    await made.filesystem.writeFile('/root/kept', 'before')
    const { id } = await snapshot.create(made.sandboxId, { name: 'kept' })
    await made.filesystem.writeFile('/root/kept', 'after')
    expect(await snapshot.list()).toMatchObject([{ id, metadata: { name: 'kept', state: 'stopped' } }])
    const copy = await sandbox.create({ snapshotId: id })
    expect(await copy.filesystem.readFile('/root/kept')).toBe('before')
    expect((await sandbox.list()).map(({ sandboxId }) => sandboxId)).not.toContain(id)
    await snapshot.delete(id)
    expect(await snapshot.list()).toEqual([])
    for (const each of [made, copy]) await each.destroy()
  })
})

it('the AI SDK tools run the model’s tool calls and report errors to the model', async () => {
  await using unit = await berth.units.create(IMAGE)
  const asked: [string, object][] = [
    ['write_file', { path: '/root/a.txt', text: 'written by a model' }],
    ['run', { command: 'cat /root/a.txt' }],
    ['read_file', { path: '/root/none' }],
    ['list_directory', { path: '/root' }],
    ['publish', { port: 8080 }],
  ]
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  }
  const steps = asked.map(([toolName, input], index) => ({
    content: [{ type: 'tool-call' as const, toolCallId: `${index}`, toolName, input: JSON.stringify(input) }],
    finishReason: { unified: 'tool-calls' as const, raw: undefined },
    usage,
    warnings: [],
  }))
  const last = {
    content: [{ type: 'text' as const, text: 'done' }],
    finishReason: { unified: 'stop' as const, raw: undefined },
    usage,
    warnings: [],
  }
  const model = new MockLanguageModelV4({ doGenerate: [...steps, last] })
  const answer = await generateText({
    model,
    tools: toolsOfAiSdk(unit),
    stopWhen: isStepCount(9),
    prompt: 'go',
  })
  expect(answer.text).toBe('done')
  const told = answer.steps.flatMap(({ content }) => content).filter(({ type }) => type !== 'tool-call')
  expect(told).toMatchObject([
    { toolName: 'write_file', output: { bytes: 18 } },
    { toolName: 'run', output: { exitCode: 0, stdout: 'written by a model' } },
    { type: 'tool-error', toolName: 'read_file', error: { code: 'not_found' } },
    { toolName: 'list_directory', output: [{ name: 'a.txt' }] },
    { toolName: 'publish', output: expect.stringMatching(/^https?:/) },
    { type: 'text' },
  ])
})

it('the LangChain tools run the model’s tool calls', async () => {
  await using unit = await berth.units.create(IMAGE)
  const tools = toolsOfLangChain(unit)
  const model = fakeModel().respondWithTools([
    { name: 'write_file', args: { path: '/root/a.txt', text: 'written by a model' } },
    { name: 'run', args: { command: 'cat a.txt', cwd: '/root' } },
    { name: 'run', args: { command: 'cat /root/a.txt' } },
    { name: 'read_file', args: { path: '/root/a.txt' } },
    { name: 'publish', args: { port: 8080 } },
  ])
  const { tool_calls: calls = [] } = await model.bindTools(tools).invoke('go')
  const answers: string[] = []
  for (const call of calls) {
    const message = await tools.find(({ name }) => name === call.name)?.invoke(call)
    answers.push(String((message as { content: unknown }).content))
  }
  expect(answers).toEqual([
    expect.stringContaining('"bytes":18'),
    expect.stringContaining('"exitCode":1'),
    expect.stringContaining('written by a model'),
    'written by a model',
    expect.stringMatching(/^https?:/),
  ])
})

it('an agent of the OpenAI Agents SDK runs its shell commands to their end where there are no WebSockets', async () => {
  vi.stubGlobal('WebSocket', undefined)
  onTestFinished(() => void vi.unstubAllGlobals())
  setTracingDisabled(true)
  service.engine.onExec(({ argv }) => (argv[0] === 'mkdir' ? { exitCode: 0 } : null))
  await using unit = await berth.units.create(IMAGE)
  const model = new ScriptedModel([
    [
      functionCall(
        'exec_command',
        { cmd: 'echo from the unit > /root/a.txt', login: false },
        { callId: 'one' },
      ),
    ],
    [functionCall('exec_command', { cmd: 'cat /root/a.txt; exit 4', login: false }, { callId: 'two' })],
    [assistantMessage('done')],
  ])
  const agent = new SandboxAgent({ name: 'coder', model, capabilities: [shell()] })
  const session = unitSession(unit)
  const { finalOutput } = await run(agent, 'go', { sandbox: { session } })
  expect(finalOutput).toBe('done')
  expect(JSON.stringify(model.lastCall?.request.input)).toMatch(/Exit code: 4\\n[^"]*from the unit/)
  expect(await session.running?.()).toBe(true)
  expect(await session.readFile?.({ path: '/root/a.txt' })).toEqual(
    new TextEncoder().encode('from the unit\n'),
  )
  expect(await session.pathExists?.('/root/none')).toBe(false)
  expect(await session.listDir?.({ path: '/root' })).toMatchObject([{ name: 'a.txt', type: 'file' }])
  expect(await session.resolveExposedPort?.(8080)).toMatchObject({ host: expect.any(String) })
})
