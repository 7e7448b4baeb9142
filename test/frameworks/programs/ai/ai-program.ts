// The unit as the AI SDK's sandbox, call by call, and a scripted model that uses it.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Berth, type Unit } from '@berth/sdk'
import { unitSandbox, unitTools } from '@berth/sdk/ai'
import { type Experimental_SandboxSession, generateText, isStepCount, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import { ask } from './agent.ts'

let unit: Unit
let sandbox: Experimental_SandboxSession
before(async () => {
  unit = await new Berth().units.create('berth.local/python:3.11', { timeoutMs: 600_000 })
  sandbox = await unitSandbox(unit, { directory: '/work' })
})
after(async () => void (await unit.destroy()))

const text = async (stream: ReadableStream<Uint8Array>) => await new Response(stream).text()
const bytes = (value: string) => new TextEncoder().encode(value)

describe('files', () => {
  it('are written and read as text, as bytes and as streams', async () => {
    await sandbox.writeTextFile({ path: 'a/text', content: 'one\ntwo\nthree\n' })
    assert.equal(await sandbox.readTextFile({ path: '/work/a/text' }), 'one\ntwo\nthree\n')
    assert.equal(await sandbox.readTextFile({ path: './a/../a/text', startLine: 2, endLine: 2 }), 'two\n')
    assert.equal(await sandbox.readTextFile({ path: 'a/text', startLine: 3, endLine: 99 }), 'three\n')
    const all = Uint8Array.from({ length: 3_000_000 }, (_, index) => index % 256)
    await sandbox.writeBinaryFile({ path: 'bytes', content: all })
    assert.deepEqual(await sandbox.readBinaryFile({ path: 'bytes' }), all)
    const pieces = new ReadableStream<Uint8Array>({
      start: (writer) => {
        for (let index = 0; index < 40; index += 1) writer.enqueue(bytes('x'.repeat(50_000)))
        writer.close()
      },
    })
    await sandbox.writeFile({ path: 'streamed', content: pieces })
    const stream = await sandbox.readFile({ path: 'streamed' })
    assert.ok(stream)
    assert.equal((await text(stream)).length, 2_000_000)
  })

  it('that are missing are null, and false for a delete', async () => {
    assert.equal(await sandbox.readFile({ path: 'none' }), null)
    assert.equal(await sandbox.readBinaryFile({ path: 'none' }), null)
    assert.equal(await sandbox.readTextFile({ path: 'none' }), null)
    assert.equal(await sandbox.stat({ path: 'none' }), null)
    assert.equal(await sandbox.listDirectory({ path: 'none' }), null)
    assert.equal(await sandbox.deleteFile({ path: 'none' }), false)
  })

  it('are described behind links, listed as links, and deleted without what they lead to', async () => {
    await sandbox.writeTextFile({ path: 'links/file', content: 'four' })
    await sandbox.run({ command: 'ln -s file links/link; ln -s . links/folder; ln -s gone links/dangling' })
    assert.deepEqual(await sandbox.stat({ path: 'links/link' }), { type: 'file', size: 4 })
    assert.equal((await sandbox.stat({ path: 'links/folder' }))?.type, 'directory')
    assert.equal(await sandbox.stat({ path: 'links/dangling' }), null)
    const listed = await sandbox.listDirectory({ path: 'links' })
    assert.deepEqual(listed, [
      { name: 'dangling', type: 'symlink' },
      { name: 'file', type: 'file' },
      { name: 'folder', type: 'symlink' },
      { name: 'link', type: 'symlink' },
    ])
    assert.equal(await sandbox.deleteFile({ path: 'links/link' }), true)
    assert.equal(await sandbox.readTextFile({ path: 'links/file' }), 'four')
  })

  it('are refused where a directory is, and a list where a file is', async () => {
    await sandbox.writeTextFile({ path: 'folder/file', content: '' })
    await assert.rejects(async () => await sandbox.writeTextFile({ path: 'folder', content: '' }))
    await assert.rejects(async () => await sandbox.deleteFile({ path: 'folder' }))
    await assert.rejects(async () => await sandbox.listDirectory({ path: 'folder/file' }))
  })
})

describe('commands', () => {
  it('run to their end in the base directory, with their environment and their code', async () => {
    assert.equal((await sandbox.run({ command: 'pwd' })).stdout, '/work\n')
    const asked = { command: 'echo $A; echo no >&2; pwd; exit 3', workingDirectory: 'a', env: { A: 'b' } }
    assert.deepEqual(await sandbox.run(asked), { exitCode: 3, stdout: 'b\n/work/a\n', stderr: 'no\n' })
  })

  it('end when their signal is aborted', async () => {
    const reason = new Error('enough')
    const controller = new AbortController()
    const running = sandbox.run({ command: 'sleep 300', abortSignal: controller.signal })
    setTimeout(() => controller.abort(reason), 300)
    await assert.rejects(async () => await running, reason)
  })

  it('that are spawned stream both outputs apart and have a pid', async () => {
    const process = await sandbox.spawn({ command: 'echo out; echo err >&2; exit 5' })
    assert.equal('stdin' in process, false)
    assert.equal(typeof process.pid, 'number')
    assert.deepEqual(await Promise.resolve(process.wait()), { exitCode: 5 })
    assert.deepEqual([await text(process.stdout), await text(process.stderr)], ['out\n', 'err\n'])
  })

  it('that are spawned take input until it is closed, also much of it', async () => {
    const process = await sandbox.spawn({ command: 'cat; exit 6', stdin: true })
    const writer = process.stdin.getWriter()
    for (let index = 0; index < 20; index += 1) await writer.write(bytes('y'.repeat(100_000)))
    await writer.close()
    assert.equal((await text(process.stdout)).length, 2_000_000)
    assert.deepEqual(await Promise.resolve(process.wait()), { exitCode: 6 })
  })

  it('that are spawned can be killed more than once, with input and without', async () => {
    for (const stdin of [true, false]) {
      const process = await sandbox.spawn({ command: 'sleep 300', stdin })
      await process.kill()
      assert.notEqual((await process.wait()).exitCode, 0)
      await process.kill()
    }
  })

  it('that are spawned are killed by their signal, whose reason their waiter gets', async () => {
    for (const stdin of [true, false]) {
      const reason = new Error('enough')
      const controller = new AbortController()
      const process = await sandbox.spawn({ command: 'sleep 301', stdin, abortSignal: controller.signal })
      setTimeout(() => controller.abort(reason), 200)
      await assert.rejects(async () => await process.wait(), reason)
    }
    assert.equal((await sandbox.run({ command: "pgrep -f '[s]leep 301'" })).stdout, '')
  })
})

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

/** A model that makes these calls, one after the other, and then says "done". */
function scripted(...calls: [string, object][]) {
  const steps = calls.map(([toolName, input], index) => ({
    content: [{ type: 'tool-call' as const, toolCallId: `${index}`, toolName, input: JSON.stringify(input) }],
    finishReason: { unified: 'tool-calls' as const, raw: undefined },
    usage,
    warnings: [],
  }))
  const done = { type: 'text' as const, text: 'done' }
  const stop = { unified: 'stop' as const, raw: undefined }
  return new MockLanguageModelV4({
    doGenerate: [...steps, { content: [done], finishReason: stop, usage, warnings: [] }],
  })
}

describe('a model', () => {
  it('works with the ready-made tools and is told what went wrong', async () => {
    const model = scripted(
      ['write_file', { path: '/work/a.py', text: 'print(6 * 7)' }],
      ['run', { command: 'python3 a.py', cwd: '/work' }],
      ['read_file', { path: '/work/nothing' }],
      ['list_directory', { path: '/work/a' }],
      ['run', {}],
    )
    const { steps } = await generateText({
      model,
      prompt: 'go',
      tools: unitTools(unit),
      stopWhen: isStepCount(9),
    })
    const told = steps.flatMap(({ content }) => content).filter(({ type }) => /result|error/.test(type))
    assert.deepEqual(
      told.map((each) => ('output' in each && (each.output as { stdout?: string }).stdout) || each.type),
      ['tool-result', '42\n', 'tool-error', 'tool-result', 'tool-error'],
    )
  })

  it('reaches the unit from a tool of its own by experimental_sandbox', async () => {
    const shell = tool({
      inputSchema: z.object({ command: z.string() }),
      execute: async ({ command }, { experimental_sandbox: given }) =>
        (await given?.run({ command }))?.stdout ?? 'no sandbox',
    })
    const { steps } = await generateText({
      model: scripted(['shell', { command: 'pwd' }]),
      prompt: 'go',
      tools: { shell },
      experimental_sandbox: sandbox,
      stopWhen: isStepCount(3),
    })
    assert.deepEqual(
      steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output)),
      ['/work\n'],
    )
  })

  it('answers by the example, whose unit is gone afterwards', async () => {
    assert.equal(await ask(scripted(['run', { command: 'echo hello' }]), 'go'), 'done')
    assert.equal((await new Berth().units.list().all()).length, 1)
  })
})
