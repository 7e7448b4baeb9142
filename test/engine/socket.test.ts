// The engine behind its socket: the whole contract over HTTP, and faults that only a socket can have.

import { link, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Engine, LogLine, MachineStatus } from '../../src/engine/engine.ts'
import { createFakeEngine, type FakeEngine } from '../support/fake-engine/fake-engine.ts'
import { ref, run, startMachine } from '../support/fake-engine/start-machine.ts'
import { openEpochs } from '../../src/engine/epochs.ts'
import { askEngineEpoch, connectEngine } from '../../src/engine/ipc/client.ts'
import { serveEngine } from '../../src/engine/ipc/server.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { describeEngineContract } from './contract.ts'
import { fakeOptions, pullConfigured } from './fake-options.ts'
import { eventually, kindOf } from './suite.ts'

let directory = ''
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), 'berth-socket-'))))
afterAll(async () => await rm(directory, { recursive: true }))

const gid = process.getegid?.() ?? 0
let sockets = 0
const newSocketPath = () => join(directory, `engine-${(sockets += 1)}.sock`)

type Served = { fake: FakeEngine; engine: Engine; socketPath: string; close: () => Promise<void> }

async function serve(served?: Engine, socketPath = newSocketPath()): Promise<Served> {
  const fake = createFakeEngine({ clock: systemClock })
  const server = await serveEngine({
    engine: served ?? fake,
    epochs: await openEpochs(`${socketPath}.epoch`),
    socketPath,
    socketGid: gid,
    log: silentLog,
  })
  let open = true
  const close = async () => {
    if (open) await server.close()
    open = false
  }
  return {
    fake,
    engine: connectEngine({ address: { socketPath }, epoch: 1, onLost: () => {} }),
    socketPath,
    close,
  }
}

/** Serves a running machine on a socket that is closed when the test ends. */
async function withMachine() {
  const served = await serve()
  onTestFinished(served.close)
  await startMachine(served.engine)
  return { ...served, ref, run }
}

describeEngineContract(
  'the engine in memory, over its socket',
  async () => {
    const served = await serve()
    return { ...served, configuredImage: await pullConfigured(served.fake) }
  },
  fakeOptions,
)

async function isRefused(path: string): Promise<boolean> {
  const socket = connect(path)
  return await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(false))
    socket.once('error', () => resolve(true))
  }).finally(() => socket.destroy())
}

describe('the engine socket', () => {
  test('commands one after the other come over one connection, also those that print', async () => {
    const { ref, socketPath } = await withMachine()
    let connections = 0
    const counted = createServer((socket) => {
      connections += 1
      const onward = connect(socketPath)
      socket.pipe(onward).pipe(socket)
      for (const each of [socket, onward]) each.on('error', () => {})
      onTestFinished(() => void socket.destroy())
    })
    const path = newSocketPath()
    await new Promise<void>((resolve) => counted.listen(path, resolve))
    onTestFinished(() => void counted.close())
    const engine = connectEngine({ address: { socketPath: path }, epoch: 1, onLost: () => {} })
    for (const argv of [['echo', 'one'], ['true'], ['false'], ['echo', 'two']])
      await engine.exec(ref, { argv, stdin: null, timeoutMs: 10_000 }, () => {})
    expect(connections).toBe(1)
  })

  test('can be opened by its group only and is removed on close', async () => {
    const { socketPath, close } = await serve()
    const { mode, gid: owner } = await stat(socketPath)
    expect([(mode & 0o777).toString(8), owner]).toEqual(['660', gid])
    await close()
    await expect(stat(socketPath)).rejects.toThrow('ENOENT')
  })

  test('replaces the socket of a killed engine and refuses to replace that of a live one', async () => {
    const socketPath = newSocketPath()
    const dead = createServer()
    await new Promise<void>((resolve) => dead.listen(`${socketPath}.dead`, resolve))
    // A killed process leaves a socket file without a listener.
    await link(`${socketPath}.dead`, socketPath)
    await new Promise((resolve) => dead.close(resolve))
    // A process that another test is starting has a copy of the listener until it runs its own program.
    await eventually(async () => (await isRefused(socketPath)) || null)
    const first = await serve(undefined, socketPath)
    onTestFinished(first.close)
    await expect(serve(undefined, socketPath)).rejects.toThrow('another process listens')
    expect(await first.engine.list()).toEqual([])
  })

  test('does not replace a regular file at its path', async () => {
    const socketPath = newSocketPath()
    await writeFile(socketPath, 'precious')
    await expect(serve(undefined, socketPath)).rejects.toThrow('is not a socket')
  })
})

describe('a server that has lost its leadership', () => {
  const serverOf = (socketPath: string, epoch: number) => {
    let lost = 0
    const engine = connectEngine({ address: { socketPath }, epoch, onLost: () => void (lost += 1) })
    return { engine, lost: () => lost }
  }

  test('gets stale_caller for every operation after the first call of the new server', async () => {
    const { fake, engine, ref, run, socketPath } = await withMachine()
    const [old, next] = [serverOf(socketPath, 1), serverOf(socketPath, 2)]
    await old.engine.stop(ref, 0)
    expect(await askEngineEpoch({ socketPath })).toBe(1)
    await next.engine.list()
    expect(await askEngineEpoch({ socketPath })).toBe(2)
    const before = fake.calls.length
    const size = { cpus: 1, memoryMb: 64, pids: 8, diskGb: 1 }
    const machine = {
      id: 'unit_2',
      imageDigest: `sha256:${'0'.repeat(64)}`,
      size,
      volume: null,
      networkGroup: 1,
    }
    const asked = [
      () => old.engine.recover([]),
      () => old.engine.destroy(ref.id),
      () => old.engine.start({ ...ref, generation: 9 }, run),
      () => old.engine.create({ ...machine, isolation: 'runc' as const }),
      () => old.engine.list(),
      () => old.engine.exec(ref, { argv: ['true'], stdin: null, timeoutMs: 1000 }, () => {}),
    ]
    for (const ask of asked) expect(await kindOf(ask())).toBe('stale_caller')
    expect(fake.calls).toHaveLength(before)
    expect([old.lost(), next.lost()]).toEqual([asked.length - 1, 0])
    expect(await kindOf(engine.list())).toBe('stale_caller')
  })

  test('is still refused after a restart of the engine', async () => {
    const { fake, socketPath, close } = await serve()
    await serverOf(socketPath, 7).engine.list()
    await close()
    const back = await serve(fake, socketPath)
    onTestFinished(back.close)
    expect(await kindOf(serverOf(socketPath, 6).engine.list())).toBe('stale_caller')
    expect(await serverOf(socketPath, 7).engine.list()).toEqual([])
  })

  test('is refused among concurrent calls of many newer servers', async () => {
    const { socketPath, close } = await serve()
    onTestFinished(close)
    const epochs = Array.from({ length: 20 }, (_, n) => n + 1)
    await Promise.allSettled(epochs.map((epoch) => serverOf(socketPath, epoch).engine.list()))
    expect(await askEngineEpoch({ socketPath })).toBe(20)
    for (const epoch of epochs.slice(0, -1)) {
      expect(await kindOf(serverOf(socketPath, epoch).engine.list())).toBe('stale_caller')
    }
  })
})

describe('an engine that restarts', () => {
  test('fails calls with engine_away while it is down and accepts them once it is back', async () => {
    const { fake, engine, socketPath, close } = await serve()
    expect(await engine.list()).toEqual([])
    await close()
    expect(await kindOf(engine.list())).toBe('engine_away')
    const back = await serve(fake, socketPath)
    onTestFinished(back.close)
    expect(await engine.list()).toEqual([])
  })

  test('ends open commands and logs with an error, so that they are not taken for complete', async () => {
    const { engine, ref, close } = await withMachine()
    const command = kindOf(
      engine.exec(ref, { argv: ['sleep', '60'], stdin: null, timeoutMs: 60_000 }, () => {}),
    )
    const following = kindOf(collect(engine.followLogs(ref.id, null, new AbortController().signal)))
    await new Promise((resolve) => setTimeout(resolve, 100))
    await close()
    expect(await command).toBe('engine_away')
    expect(await following).toBe('engine_away')
  })

  test('is reconnected to by watchers of exits, who learn what ended in between', async () => {
    const { fake, engine, ref, run, socketPath, close } = await withMachine()
    const abort = new AbortController()
    const told: MachineStatus[] = []
    const watching = engine.watchExits((status) => void told.push(status), abort.signal)
    await eventually(async () => fake.calls.find((call) => call.operation === 'watchExits') ?? null)
    await close()
    fake.endProcess(ref.id, { code: 5 })
    const back = await serve(fake, socketPath)
    onTestFinished(back.close)
    expect(await eventually(async () => told[0] ?? null)).toMatchObject({ generation: 1, exit: { code: 5 } })
    await engine.start({ ...ref, generation: 2 }, run)
    fake.endProcess(ref.id, { code: 6 })
    await eventually(async () => told.find((status) => status.exit?.code === 6) ?? null)
    abort.abort()
    await watching
  })

  test('is reconnected to by watchers of traffic', async () => {
    const { fake, engine, ref, socketPath, close } = await withMachine()
    const abort = new AbortController()
    const told: string[][] = []
    const watching = engine.watchTraffic((ids) => void told.push(ids), abort.signal)
    const tellsAgain = async () => {
      told.length = 0
      await eventually(async () => {
        fake.sendPackets([ref.id])
        return told.length > 0 || null
      })
      expect(told[0]).toEqual([ref.id])
    }
    await tellsAgain()
    await close()
    const back = await serve(fake, socketPath)
    onTestFinished(back.close)
    await tellsAgain()
    abort.abort()
    await watching
  })

  test('completes running operations before it closes', async () => {
    const { fake, engine, ref, close } = await withMachine()
    fake.delay('stop', 300)
    const stopping = engine.stop(ref, 0)
    await new Promise((resolve) => setTimeout(resolve, 50))
    await close()
    await stopping
    expect(fake.machines()).toMatchObject([{ state: 'exited' }])
  })
})

describe('a client of the engine', () => {
  test('that aborts ends its command', async () => {
    const { engine, ref } = await withMachine()
    const abort = new AbortController()
    const request = { argv: ['sh', '-c', 'sleep 0.4; echo x > /tmp/survived'], stdin: null, timeoutMs: 5000 }
    const command = engine.exec(ref, request, () => {}, abort.signal)
    setTimeout(() => abort.abort(new Error('the caller left')), 100)
    await expect(command).rejects.toThrow('the caller left')
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect(await kindOf(engine.readFile(ref, '/tmp/survived', 10))).toBe('file_not_found')
  })

  test('that does not read applies backpressure to its command', async () => {
    const { fake, ref } = await withMachine()
    let written = 0
    const counting: Engine = {
      ...fake,
      exec: async (at, request, onOutput, signal) =>
        await fake.exec(
          at,
          request,
          async (output) => {
            await onOutput(output)
            written += output.data.length
          },
          signal,
        ),
    }
    const served = await serve(counting)
    onTestFinished(served.close)
    const reading = Promise.withResolvers<void>()
    const abort = new AbortController()
    const command = served.engine.exec(
      ref,
      { argv: ['yes'], stdin: null, timeoutMs: 60_000 },
      async () => await reading.promise,
      abort.signal,
    )
    await new Promise((resolve) => setTimeout(resolve, 300))
    const held = written
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(written).toBe(held)
    expect(held).toBeLessThan(2 * 1024 * 1024)
    abort.abort(new Error('enough'))
    reading.resolve()
    await expect(command).rejects.toThrow('enough')
  })
})

describe('the engine refuses', () => {
  async function post(
    socketPath: string,
    path: string,
    body: string | Buffer,
    method = 'POST',
    headers: Record<string, string> = { 'berth-epoch': '1' },
  ) {
    const answer = Promise.withResolvers<{ status: number; body: string }>()
    const agent = new Agent()
    const request = httpRequest({ socketPath, path, method, headers, agent }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => void chunks.push(chunk))
      response.on('end', () =>
        answer.resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
      )
    })
    request.on('error', answer.reject)
    request.end(body)
    return await answer.promise
  }

  const ref = { id: 'unit_1', generation: 1 }
  const exec = { argv: ['true'], stdin: null, timeoutMs: 1000 }
  const run = {
    hostname: 'a',
    entrypoint: null,
    cmd: null,
    env: {},
    files: [],
    searchDomain: 'b',
    egress: null,
  }
  const egress = { mode: 'listed', allow: [], siblings: 'none', stack: null, secrets: [] }
  const fork = { id: 'unit_2', source: ref, networkGroup: 1, run: null }
  const refused: Record<string, [operation: string, body: unknown]> = {
    'an operation nobody knows': ['shutdown', {}],
    'a property of objects as an operation': ['constructor', {}],
    'an unknown field': ['list', { all: true }],
    'an id with a path in it': ['destroy', { id: '../../etc' }],
    'an id that is too long': ['destroy', { id: 'a'.repeat(65) }],
    'a generation below zero': ['stop', { ref: { ...ref, generation: -1 }, graceMs: 0 }],
    'a grace time without end': ['stop', { ref, graceMs: 1e9 }],
    'an argument with NUL': ['exec', { ref, request: { ...exec, argv: ['a\0b'] } }],
    'no command': ['exec', { ref, request: { ...exec, argv: [] } }],
    'too many arguments': [
      'exec',
      { ref, request: { ...exec, argv: Array.from({ length: 1025 }, () => 'a') } },
    ],
    'no deadline': ['exec', { ref, request: { ...exec, timeoutMs: 0 } }],
    'base64 cut short': ['writeFile', { ref, path: '/a', content: 'YWJ' }],
    'what is no base64': ['writeFile', { ref, path: '/a', content: '!!!!' }],
    'a host name with a dot': ['start', { ref, run: { ...run, hostname: 'a.b' } }],
    'an environment name with =': ['start', { ref, run: { ...run, env: { 'A=B': 'c' } } }],
    'an environment value with NUL': ['start', { ref, run: { ...run, env: { A: 'b\0' } } }],
    'a search domain with a newline': [
      'start',
      { ref, run: { ...run, searchDomain: 'a\nnameserver 1.1.1.1' } },
    ],
    'a rule of egress that names an address': [
      'restrict',
      { ref, egress: { ...egress, allow: ['203.0.113.7'] } },
    ],
    'a rule of egress that is not canonical': [
      'restrict',
      { ref, egress: { ...egress, allow: ['Example.com'] } },
    ],
    'too many boot files': [
      'start',
      { ref, run: { ...run, files: Array.from({ length: 65 }, (_, i) => ({ path: `/${i}`, content: '' })) } },
    ],
    'boot files over their size': [
      'start',
      {
        ref,
        run: { ...run, files: [{ path: '/a', content: Buffer.alloc(256 * 1024 + 1).toString('base64') }] },
      },
    ],
    'a fork of nothing': ['fork', { forks: [] }],
    'a fork whose id has a path in it': ['fork', { forks: [{ ...fork, id: '../unit_1' }] }],
    'a fork of a source without a generation': ['fork', { forks: [{ ...fork, source: { id: 'unit_1' } }] }],
    'a fork with half a run': ['fork', { forks: [{ ...fork, run: { ...run, env: null } }] }],
    'two forks with one id': ['fork', { forks: [fork, fork] }],
    'more forks than any stack has units': [
      'fork',
      { forks: Array.from({ length: 501 }, (_, i) => ({ ...fork, id: `unit_${i}` })) },
    ],
    'a digest with a path in it': ['create', { id: 'a', imageDigest: '../../x' }],
  }

  let served: Served | null = null
  beforeAll(async () => void (served = await serve()))
  afterAll(async () => await served?.close())
  const socketPath = () => served?.socketPath ?? ''

  test.each(Object.entries(refused))('%s before it runs anything', async (_name, [operation, body]) => {
    const before = served?.fake.calls.length
    const answer = await post(socketPath(), `/${operation}`, JSON.stringify(body))
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.body)).toMatchObject({ error: { kind: 'internal' } })
    expect(served?.fake.calls.length).toBe(before)
  })

  test.each([{}, ...['', '-1', '1.5', '1e99', 'x', '1, 2'].map((epoch) => ({ 'berth-epoch': epoch }))])(
    'a call with %j as its epoch',
    async (headers) => {
      const before = served?.fake.calls.length
      expect((await post(socketPath(), '/list', '{}', 'POST', headers)).status).toBe(400)
      expect(served?.fake.calls.length).toBe(before)
    },
  )

  test('a body that is not JSON, another HTTP method and an endless body', async () => {
    expect((await post(socketPath(), '/list', '{')).status).toBe(400)
    expect((await post(socketPath(), '/list', '', 'GET')).status).toBe(400)
    const endless = post(socketPath(), '/list', Buffer.alloc(3 * 1024 * 1024, 32))
    const outcome = await endless.then(({ status }) => status, String)
    expect([400, 'Error: write EPIPE', 'Error: read ECONNRESET']).toContain(outcome)
    expect(await served?.engine.list()).toEqual([])
  })

  test('a path that is too long, with bad_path', async () => {
    const engine = served?.engine ?? (await serve()).engine
    expect(await kindOf(engine.readFile(ref, `/${'n'.repeat(5000)}`, 10))).toBe('bad_path')
  })

  test('the engine does not reveal internal error messages', async () => {
    served?.fake.fail('list', new Error('cannot open /var/lib/berth/secret'))
    const answer = await post(socketPath(), '/list', '{}')
    expect(answer.status).toBe(500)
    expect(answer.body).not.toContain('secret')
  })
})

async function collect(lines: AsyncIterable<LogLine>): Promise<LogLine[]> {
  const all: LogLine[] = []
  for await (const line of lines) all.push(line)
  return all
}
