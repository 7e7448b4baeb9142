// The sandbox and the filesystem by the calls of Mastra's workspaces, and agents with a scripted model that use them.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Berth } from '@berth/sdk'
import { UnitFilesystem, UnitSandbox } from '@berth/sdk/mastra'
import {
  DirectoryNotEmptyError,
  FileExistsError,
  FileNotFoundError,
  IsDirectoryError,
  StaleFileError,
  supportsNetworking,
  Workspace,
} from '@mastra/core/workspace'
import { MockLanguageModelV4 } from 'ai/test'
import { ask } from './agent.ts'

const berth = new Berth()
const sandbox = new UnitSandbox({ workingDirectory: '/work', env: { COLOUR: 'blue' } })
const files = new UnitFilesystem(sandbox, { root: '/work' })
const workspace = new Workspace({ sandbox, filesystem: files })
before(async () => {
  // The first unit of an image waits until that is built.
  await using unit = await berth.units.create('berth.local/python:3.11', { timeoutMs: 600_000 })
  assert.equal(unit.state, 'running')
  await workspace.init()
})
after(async () => await workspace.destroy())

describe('the sandbox', () => {
  it('runs commands with its environment in its directory, and tells both outputs as they come', async () => {
    const said: string[] = []
    const ended = await sandbox.executeCommand?.('pwd; echo $COLOUR $A; echo no >&2; exit 3', [], {
      env: { A: 'b' },
      onStdout: (text) => void said.push(text),
    })
    assert.deepEqual(
      [ended?.stdout, ended?.stderr, ended?.exitCode, ended?.success],
      ['/work\nblue b\n', 'no\n', 3, false],
    )
    assert.equal(said.join(''), '/work\nblue b\n')
    assert.equal((await sandbox.executeCommand?.('printf', ['%s|', "it's", 'a b']))?.stdout, "it's|a b|")
  })

  it('ends commands that take too long or whose signal is aborted', async () => {
    const late = await sandbox.executeCommand?.('sleep 60', [], { timeout: 300 })
    assert.deepEqual([late?.exitCode, late?.timedOut], [124, true])
    const aborted = await sandbox.executeCommand?.('sleep 60', [], { abortSignal: AbortSignal.timeout(300) })
    assert.deepEqual([aborted?.killed, aborted?.success], [true, false])
  })

  it('spawns processes that take input, are listed, waited for and killed', async () => {
    const cat = await sandbox.processes.spawn('cat; exit 5')
    await cat.sendStdin('y'.repeat(500_000))
    await cat.sendStdin('end\n')
    await cat.closeStdin()
    const ended = await cat.wait()
    assert.deepEqual([ended.exitCode, ended.stdout.length], [5, 500_004])
    await assert.rejects(async () => await cat.sendStdin('x'), /has ended/)
    const sleeping = await sandbox.processes.spawn('sleep 300')
    const listed = await sandbox.processes.list()
    assert.deepEqual(listed.find(({ pid }) => pid === sleeping.pid)?.running, true)
    assert.equal(await sandbox.processes.kill(sleeping.pid), true)
    assert.equal(await sleeping.kill(), false)
    assert.equal((await sleeping.wait()).killed, true)
    assert.equal((await (await sandbox.processes.spawn('cat', { stdinMode: 'ignore' })).wait()).exitCode, 0)
  })

  it('pipes as streams of Node', async () => {
    const upper = await sandbox.processes.spawn('tr a-z A-Z')
    upper.writer.end('hello\n')
    let said = ''
    for await (const piece of upper.reader) said += String(piece)
    assert.equal(said, 'HELLO\n')
  })

  it('has URLs, writes files with their mode, and tells what it is', async () => {
    assert.ok(supportsNetworking(sandbox))
    assert.match((await sandbox.networking.getPortUrl(8080)) ?? '', /^https?:/)
    await sandbox.writeFiles([{ path: 'run.sh', content: '#!/bin/sh\necho ran\n', mode: 0o755 }])
    assert.equal((await sandbox.executeCommand?.('./run.sh'))?.stdout, 'ran\n')
    assert.equal(sandbox.getInfo().status, 'running')
  })

  it('with the same id is the same unit, and goes on after a stop', async () => {
    const other = new UnitSandbox({ id: sandbox.id })
    assert.deepEqual(await other.start(), { outcome: 'connected' })
    assert.equal(other.unit.id, sandbox.unit.id)
    const own = new UnitSandbox()
    assert.deepEqual(await own.start(), { outcome: 'created' })
    await own.executeCommand?.('echo kept >/root/kept')
    await own.stop()
    const again = await own.executeCommand?.('cat /root/kept')
    assert.deepEqual([again?.stdout, again?.stderr, again?.exitCode], ['kept\n', '', 0])
    await own.destroy()
    assert.equal(await berth.units.find(own.id), null)
  })

  it('of a unit that is given leaves it as it is', async () => {
    await using unit = await berth.units.create('berth.local/python:3.11')
    const given = new UnitSandbox({ unit })
    assert.equal((await given.executeCommand?.('echo here'))?.stdout, 'here\n')
    await given.destroy()
    assert.equal((await unit.refresh()).state, 'running')
  })
})

describe('the filesystem', () => {
  it('writes, reads and appends below its root', async () => {
    await files.writeFile('/a/b.txt', 'one')
    await files.appendFile('/a/b.txt', ' two')
    assert.equal(await files.readFile('/a/b.txt', { encoding: 'utf-8' }), 'one two')
    assert.deepEqual(await files.readFile('../../a/b.txt'), Buffer.from('one two'))
    assert.equal((await sandbox.executeCommand?.('cat a/b.txt'))?.stdout, 'one two')
    assert.equal((await files.stat('/a/b.txt')).size, 7)
    assert.equal(files.resolveAbsolutePath('/x'), '/work/x')
  })

  it('throws the errors of the framework', async () => {
    await assert.rejects(async () => await files.readFile('/none'), FileNotFoundError)
    await assert.rejects(async () => await files.readFile('/a'), IsDirectoryError)
    await assert.rejects(
      async () => await files.writeFile('/a/b.txt', '', { overwrite: false }),
      FileExistsError,
    )
    const stale = { expectedMtime: new Date(0) }
    await assert.rejects(async () => await files.writeFile('/a/b.txt', '', stale), StaleFileError)
    await assert.rejects(async () => await files.rmdir('/a'), DirectoryNotEmptyError)
    await assert.rejects(async () => await files.deleteFile('/none'), FileNotFoundError)
    await files.deleteFile('/none', { force: true })
  })

  it('copies, moves, lists and removes', async () => {
    await files.mkdir('/c/d')
    await files.copyFile('/a', '/c/e', { recursive: true })
    await files.moveFile('/c/e/b.txt', '/c/d/f.md')
    assert.deepEqual(
      (await files.readdir('/c', { recursive: true })).map(({ name }) => name),
      ['d', 'd/f.md', 'e'],
    )
    const found = await files.readdir('/c', { recursive: true, extension: '.md' })
    assert.ok(found.some(({ name }) => name === 'd/f.md'))
    await files.rmdir('/c', { recursive: true })
    assert.equal(await files.exists('/c'), false)
  })
})

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
/** A model that makes these calls, one after the other, and then says what it was told last. */
function scripted(...calls: [string, object][]) {
  const left = calls.map(([toolName, input], index) => ({
    type: 'tool-call' as const,
    toolCallId: `${index}`,
    toolName,
    input: JSON.stringify(input),
  }))
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const call = left.shift()
      return {
        content: [call ?? { type: 'text', text: JSON.stringify(prompt.at(-1)) }],
        finishReason: { unified: call ? 'tool-calls' : 'stop', raw: undefined },
        usage,
        warnings: [],
      }
    },
  })
}

it('the agent of the example writes and runs a program in a unit that is gone afterwards', async () => {
  const before = (await berth.units.list().all()).length
  // The two packages have types of their own for the same interface.
  const model = scripted(
    ['mastra_workspace_write_file', { path: 'a.py', content: 'print(6 * 7)' }],
    ['mastra_workspace_execute_command', { command: 'python3 a.py' }],
  ) as unknown as Parameters<typeof ask>[0]
  assert.match(await ask(model, 'go'), /42/)
  assert.equal((await berth.units.list().all()).length, before)
})
