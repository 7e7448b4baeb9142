// Low-latency calls over a real socket: which requests the engine refuses, and what survives its restart. The engine
// contract for freeze and thaw over this socket is in test/engine/socket.test.ts.

import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import type { Engine } from '../engine.ts'
import { openEpochs } from '../epochs.ts'
import { createFakeEngine, type FakeEngine } from '../../../test/support/fake-engine/fake-engine.ts'
import { ref, run, startMachine } from '../../../test/support/fake-engine/start-machine.ts'
import { connectEngine } from './client.ts'
import { serveEngine } from './server.ts'

let directory: string
let socketPath: string
let fake: FakeEngine
let serving: { close(): Promise<void> }
let engine: Engine
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-quick-'))
  socketPath = join(directory, 'engine.sock')
  fake = createFakeEngine({ clock: systemClock })
  await serve()
  engine = serverOf(1).engine
  await startMachine(engine)
})
afterEach(async () => {
  await serving.close()
  await rm(directory, { recursive: true })
})

async function serve(): Promise<void> {
  const epochs = await openEpochs(`${socketPath}.epoch`)
  const socketGid = process.getegid?.() ?? 0
  serving = await serveEngine({ engine: fake, epochs, socketPath, socketGid, log: silentLog })
}

function serverOf(epoch: number) {
  let lost = 0
  return {
    engine: connectEngine({ address: { socketPath }, epoch, onLost: () => void (lost += 1) }),
    lost: () => lost,
  }
}

const quickPath = () => join(directory, 'engine.quick')

/** Returns the engine’s answer to this line, or null if it closed the connection. */
async function saidTo(line: string): Promise<unknown> {
  const socket = connect(quickPath())
  // Closing with unread input appears as a connection reset.
  socket.on('error', () => {})
  socket.write(`${line}\n`)
  const said = Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [null])])
  const [data] = await said
  socket.destroy()
  return data === null ? null : JSON.parse(String(data))
}

const asking = (operation: string, request: unknown, epoch: unknown = 1) =>
  JSON.stringify({ id: 1, epoch, operation, request })

describe('low-latency calls', () => {
  test('use a socket that only its group can open and that close() removes', async () => {
    expect((await stat(quickPath())).mode & 0o777).toBe(0o660)
    await serving.close()
    await expect(stat(quickPath())).rejects.toThrow('ENOENT')
    await serve()
  })

  test('are answered as soon as each one completes, in any order', async () => {
    fake.delay('freeze', 100)
    const order: string[] = []
    const freezing = engine.freeze(ref).then(() => order.push('frozen'))
    await engine.thaw(ref).then(() => order.push('thawed'))
    await freezing
    expect(order).toEqual(['thawed', 'frozen'])
  })

  test('do not carry a start with more than fits into a line, which goes over HTTP', async () => {
    const large = { ...run, files: [{ path: '/srv/large', content: Buffer.alloc(200_000, 'a') }] }
    const next = { ...ref, generation: 2 }
    await engine.start(next, large)
    expect(fake.calls.at(-1)).toEqual({ operation: 'start', ...next })
    // The connection goes on.
    await engine.thaw(next)
  })

  test('fail with the error kind that the engine reports', async () => {
    const asked = engine.thaw({ ...ref, generation: 7 })
    await expect(asked).rejects.toMatchObject({ kind: 'not_running' })
  })

  test('do not reveal internal error messages to the caller', async () => {
    fake.fail('thaw', new Error('cannot open /var/lib/berth/secret'))
    const said = await saidTo(asking('thaw', { ref }))
    expect(said).toMatchObject({ id: 1, error: { kind: 'internal' } })
    expect(JSON.stringify(said)).not.toContain('secret')
  })

  test.each([
    ['an unknown field', asking('thaw', { ref, all: true })],
    ['an id with a path in it', asking('thaw', { ref: { ...ref, id: '../../etc' } })],
    ['a generation below zero', asking('freeze', { ref: { ...ref, generation: -1 } })],
    ['no request', asking('freeze', null)],
    ['a null epoch', asking('thaw', { ref }, null)],
    ['epoch zero', asking('thaw', { ref }, 0)],
    ['a fractional epoch', asking('thaw', { ref }, 1.5)],
    ['a huge epoch', asking('thaw', { ref }, 1e99)],
    ['a string epoch', asking('thaw', { ref }, '1')],
  ])('with %s are refused before the engine runs them', async (_, line) => {
    const before = fake.calls.length
    expect(await saidTo(line)).toMatchObject({ id: 1, error: { kind: 'internal' } })
    expect(fake.calls.length).toBe(before)
  })

  test.each([
    ['no epoch', JSON.stringify({ id: 1, operation: 'thaw', request: { ref } })],
    ['an operation that is not quick', asking('destroy', { id: ref.id })],
    ['an operation of JavaScript', asking('constructor', {})],
    ['no JSON', 'not JSON'],
    ['a string for its id', '{"id":"1","epoch":1,"operation":"thaw","request":{}}'],
    ['an extra field', '{"id":1,"epoch":1,"operation":"thaw","request":{},"as":"root"}'],
    ['a line that is too long', asking('thaw', { ref: 'a'.repeat(64 * 1024) })],
    ['HTTP', 'POST /thaw HTTP/1.1'],
  ])('close the connection for a line with %s', async (_, line) => {
    const before = fake.calls.length
    expect(await saidTo(line)).toBe(null)
    expect(fake.calls.length).toBe(before)
  })
})

describe('a server whose lease another server has taken over', () => {
  test('has its low-latency calls refused as stale and is notified once', async () => {
    const [old, next] = [serverOf(1), serverOf(2)]
    await old.engine.freeze(ref)
    await next.engine.thaw(ref)
    const before = fake.calls.length
    await expect(old.engine.freeze(ref)).rejects.toMatchObject({ kind: 'stale_caller' })
    expect([old.lost(), next.lost(), fake.calls.length]).toEqual([1, 0, before])
  })
})

describe('an engine that restarts', () => {
  test('fails low-latency calls with engine_away while it is down and accepts them once it is back', async () => {
    await engine.freeze(ref)
    await serving.close()
    await expect(engine.thaw(ref)).rejects.toMatchObject({ kind: 'engine_away' })
    await serve()
    await engine.thaw(ref)
  })

  test('completes calls in progress before it closes', async () => {
    fake.delay('freeze', 200)
    const freezing = engine.freeze(ref)
    await new Promise((resolve) => setTimeout(resolve, 50))
    await serving.close()
    await freezing
    expect(fake.machines()).toMatchObject([{ frozen: true }])
    await serve()
  })
})
