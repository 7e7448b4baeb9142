// The backend by the calls of deepagents, and agents with a scripted model that use it.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Berth, type Unit } from '@berth/sdk'
import { UnitBackend } from '@berth/sdk/deepagents'
import { fakeModel } from '@langchain/core/testing'
import { createDeepAgent, isSandboxBackend } from 'deepagents'
import { AIMessage } from 'langchain'
import { ask } from './agent.ts'

const berth = new Berth()
let unit: Unit
let backend: UnitBackend
before(async () => {
  unit = await berth.units.create('berth.local/python:3.11', { timeoutMs: 600_000 })
  backend = new UnitBackend(unit, { directory: '/root' })
})
after(async () => void (await unit.destroy()))

const bytes = (text: string) => new TextEncoder().encode(text)

describe('the backend', () => {
  it('is a sandbox and runs commands in its directory', async () => {
    assert.equal(isSandboxBackend(backend), true)
    assert.equal(backend.id, unit.id)
    const ended = await backend.execute('pwd; echo no >&2; exit 3')
    assert.deepEqual(ended, { output: '/root\nno\n', exitCode: 3, truncated: false })
    const hasty = new UnitBackend(unit, { timeoutMs: 300 })
    assert.equal((await hasty.execute('sleep 60')).exitCode, 124)
  })

  it('moves files of any size both ways, and answers for each of them', async () => {
    const large = bytes('x'.repeat(3_000_000))
    const up = await backend.uploadFiles([
      ['/up/large', large],
      ['/up/small', bytes('small')],
      ['/tmp', bytes('')],
    ])
    assert.deepEqual(
      up.map(({ error }) => error),
      [null, null, 'is_directory'],
    )
    const down = await backend.downloadFiles(['/up/large', '/up/none', '/up', 'relative'])
    assert.deepEqual(
      down.map(({ error }) => error),
      [null, 'file_not_found', 'is_directory', 'invalid_path'],
    )
    assert.deepEqual(down[0]?.content, large)
  })

  it('has the file tools that the framework makes of it', async () => {
    assert.equal((await backend.write('/w/a.py', 'one\ntwo\nthree\n')).error, undefined)
    assert.equal((await backend.edit('/w/a.py', 'two', 'zwei')).occurrences, 1)
    const read = await backend.read('/w/a.py', 1, 1)
    assert.match(String(read.content), /zwei/)
    assert.doesNotMatch(String(read.content), /one|three/)
    assert.deepEqual(
      (await backend.ls('/w')).files?.map(({ path }) => path),
      ['/w/a.py'],
    )
    assert.deepEqual((await backend.glob('**/*.py', '/w')).files?.length, 1)
    assert.deepEqual(
      (await backend.grep('zwei', '/w')).matches?.map(({ line }) => line),
      [2],
    )
    assert.equal((await backend.delete('/w/a.py')).error, undefined)
    assert.match(String((await backend.read('/w/a.py')).error), /not found/i)
  })
})

describe('an agent', () => {
  it('writes a program, runs it and is told what it printed', async () => {
    const model = fakeModel()
      .respondWithTools([{ name: 'write_file', args: { file_path: '/w/b.py', content: 'print(6 * 7)' } }])
      .respondWithTools([{ name: 'execute', args: { command: 'python3 /w/b.py; exit 4' } }])
      .respond(new AIMessage('done'))
    const agent = createDeepAgent({ model, backend })
    const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'go' }] })
    assert.equal(messages.at(-1)?.text, 'done')
    assert.match(messages.map(({ text }) => text).join('\n'), /42[^]*4/)
  })

  it('of the example has a unit for its question, which is gone afterwards', async () => {
    const model = fakeModel()
      .respondWithTools([{ name: 'execute', args: { command: 'echo hello' } }])
      .respond(new AIMessage('done'))
    assert.equal(await ask(model, 'go'), 'done')
    assert.deepEqual(
      (await berth.units.list().all()).map(({ id }) => id),
      [unit.id],
    )
  })
})
