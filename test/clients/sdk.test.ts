// The TypeScript SDK against the real service, as a program uses it.

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Berth, BerthError, CommandError, type Fetch, isBerthError } from '../../packages/sdk/src/index.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let berth: Berth
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  berth = new Berth({ url: service.baseUrl, apiKey: team.key })
})
afterAll(async () => await service.close())

const IMAGE = 'node:22'
const thrownBy = async (promise: Promise<unknown>): Promise<unknown> =>
  await promise.then(
    () => null,
    (error: unknown) => error,
  )

describe('a unit', () => {
  it('is created from an image name, runs a command and is destroyed at the end of its block', async () => {
    let id: string
    {
      await using unit = await berth.units.create(IMAGE)
      id = unit.id
      expect(unit.name).toMatch(/^node-[0-9a-f]{6}$/)
      expect(unit.state).toBe('running')
      expect(unit.costLine).toContain('an hour')
      expect(await unit.exec(['echo', 'hello'])).toMatchObject({ exitCode: 0, stdout: 'hello\n' })
      expect(await unit.exec('echo one; false')).toMatchObject({ exitCode: 1, stdout: 'one\n' })
    }
    expect((await berth.units.get(id)).state).toBe('destroyed')
  })

  it('is created from a full description, and its generated secrets are returned once', async () => {
    const unit = await berth.units.create({
      name: 'whole',
      image: IMAGE,
      stack: 'sdk',
      size: 'nano',
      ports: [8080, 9090],
      expose: 'public',
      exposePort: 9090,
      env: { TOKEN: { secret: 'TOKEN' } },
    })
    expect(unit.info).toMatchObject({ name: 'whole', size: 'nano', expose: 9090 })
    expect(unit.outputs).toEqual({ TOKEN: expect.any(String), URL: await unit.url(9090) })
    expect((await berth.units.get(unit.id)).outputs).toEqual({})
    await unit.destroy()
    expect(unit.state).toBe('destroyed')
  })

  it('stops, starts, changes its sleep window and is forked', async () => {
    await using unit = await berth.units.create(IMAGE)
    expect((await unit.stop()).state).toBe('stopped')
    expect((await unit.start()).state).toBe('running')
    expect((await unit.sleep('2h')).info.sleep).toBe('2h')
    await using copy = await unit.fork({ name: `${unit.name}-copy` })
    expect(copy.info.forkedFrom).toBe(unit.id)
    expect(['memory', 'disk', 'config']).toContain(copy.copied)
  })

  it('has labels and an end, and is found by its labels', async () => {
    const asked = { image: IMAGE, metadata: { app: 'a b&c' }, timeToLive: '2h', atEnd: 'sleep' as const }
    await using unit = await berth.units.create(asked)
    const found = await berth.units.list({ metadata: { app: 'a b&c' } }).all()
    expect(found.map(({ id }) => id)).toEqual([unit.id])
    expect((await berth.units.summary({ metadata: { app: 'other' } })).total).toBe(0)
    expect((await unit.change({ metadata: {}, timeToLive: 'never' })).info).toMatchObject({
      metadata: {},
      endsAt: null,
      atEnd: 'sleep',
    })
  })

  it('has files that are streamed, moved and watched, and processes with tags', async () => {
    await using unit = await berth.units.create(IMAGE)
    const content = new Uint8Array(3_000_000).fill(7)
    await unit.files.writeStream('/srv/large', new Blob([content]), { mode: 0o600 })
    const read = await new Response(await unit.files.readStream('/srv/large')).bytes()
    expect(Buffer.from(read).equals(content)).toBe(true)
    await unit.files.writeStream('/srv/piped', new Blob([content, content]).stream())
    expect(await unit.files.facts('/srv/piped')).toMatchObject({ bytes: 6_000_000 })
    await unit.files.move('/srv/large', '/srv/moved')
    expect(await unit.files.facts('/srv/moved')).toMatchObject({ mode: '0600', owner: 'root' })
    const as = { user: 'daemon' }
    await unit.files.write('/srv/own', 'x')
    expect(await unit.files.readText('/srv/own', as)).toBe('x')
    expect(await unit.files.facts('/srv/moved', as)).toMatchObject({ bytes: 3_000_000 })
    expect(await unit.files.list('/srv', as).all()).toHaveLength(3)
    for (const none of [
      unit.files.readText('/srv/moved', { user: 'none' }),
      unit.files.readStream('/srv/moved', { user: 'none' }),
      unit.files.archive('/srv', { user: 'none' }),
    ])
      expect(await thrownBy(none)).toMatchObject({ code: 'validation', details: [{ path: 'user' }] })
    expect(await unit.files.makeDirectory('/srv/new')).toMatchObject({ made: true })
    for await (const change of unit.files.watch('/srv')) {
      if (change.event === 'ready') await unit.files.write('/srv/file', 'x', { user: 'daemon' })
      else {
        expect(change).toEqual({ event: 'create', path: 'file', isDirectory: false })
        break
      }
    }
    const job = await unit.processes.start(['sleep', 'infinity'], { tag: 'build' })
    expect((await unit.processes.list({ tag: 'build' })).map(({ id }) => id)).toEqual([job.id])
    const { processes } = await unit.processes.table()
    const own = processes.find(({ processId }) => processId === job.id)
    await unit.processes.signalPid(own?.pid ?? 0, 'INT')
    expect((await job.wait()).exitCode).toBe(130)
  })

  it('is found by its name, which is an error if two stacks have one', async () => {
    await using one = await berth.units.create({ image: IMAGE, name: 'twin', stack: 'left' })
    expect((await berth.units.find('twin'))?.id).toBe(one.id)
    expect(await berth.units.find('nobody')).toBeNull()
    await using other = await berth.units.create({ image: IMAGE, name: 'twin', stack: 'right' })
    expect(await thrownBy(berth.units.find('twin'))).toMatchObject({
      message: expect.stringContaining(other.id),
    })
    expect((await berth.units.find('twin', { stack: 'right' }))?.id).toBe(other.id)
  })

  it('created with wait: false can be awaited later', async () => {
    const release = service.engine.hang('start')
    const unit = await berth.units.create({ image: IMAGE, wait: false })
    expect(unit.state).toBe('creating')
    expect(await thrownBy(unit.ready({ timeoutMs: 50 }))).toMatchObject({ code: 'timed_out' })
    release()
    expect((await unit.ready()).state).toBe('running')
    await unit.destroy()
  })
})

describe('a shell template', () => {
  it('quotes each interpolated value as one word and each element of an array', async () => {
    await using unit = await berth.units.create(IMAGE)
    const words = ['a b', '$(id)', ';', '&& false', '"', '`x`', '\\', '*', "it's", '']
    for (const word of words) expect((await unit.sh`echo -n ${word}`).stdout).toBe(word)
    expect((await unit.sh`printf '%s\n' ${words.slice(0, 3)}`).stdout).toBe('a b\n$(id)\n;\n')
    expect((await unit.sh`echo ${7} && false`).exitCode).toBe(1)
  })
})

describe('a command', () => {
  it('that fails throws with its output if check is set', async () => {
    await using unit = await berth.units.create(IMAGE)
    const error = await thrownBy(unit.exec('echo broken >&2; false', { check: true }))
    expect(error).toBeInstanceOf(CommandError)
    expect(error).toMatchObject({ code: 'command_failed', result: { exitCode: 1, stderr: 'broken\n' } })
    expect((error as Error).message).toContain('ended with 1: broken')
  })

  it('can be read while it runs, and returns its exit code', async () => {
    await using unit = await berth.units.create(IMAGE)
    const command = unit.spawn('echo out; echo err >&2; false')
    const heard: string[] = []
    for await (const { stream, text } of command.output) heard.push(`${stream}: ${text}`)
    expect(heard).toEqual(['stdout: out\n', 'stderr: err\n'])
    expect(await command.wait()).toMatchObject({ exitCode: 1, timedOut: false })
  })

  it('that prints endlessly stops when its reader breaks off', async () => {
    await using unit = await berth.units.create(IMAGE)
    let bytes = 0
    for await (const piece of unit.spawn(['yes']).output) if ((bytes += piece.bytes.length) > 1_000_000) break
    expect(bytes).toBeGreaterThan(1_000_000)
    const running = () => service.engine.calls.filter(({ operation }) => operation === 'exec').length
    expect(running()).toBeGreaterThan(0)
    const command = unit.spawn(['sleep', 'infinity'])
    command.kill()
    expect(await thrownBy(command.wait())).toMatchObject({ name: 'AbortError' })
  })

  it('ends when its caller aborts', async () => {
    await using unit = await berth.units.create(IMAGE)
    const controller = new AbortController()
    const waiting = thrownBy(unit.exec(['sleep', 'infinity'], { signal: controller.signal }))
    const why = new Error('enough')
    controller.abort(why)
    expect(await waiting).toBe(why)
  })

  it('can have a longer timeout than the client waits for a response without data', async () => {
    await using unit = await berth.units.create(IMAGE)
    const { stdout, exitCode, truncated } = await unit.exec(['head', '-c', '2000000', '/dev/zero'], {
      timeoutMs: 600_000,
    })
    expect([stdout.length, exitCode, truncated]).toEqual([1_048_576, 0, true])
  })

  it('returns binary output unchanged', async () => {
    await using unit = await berth.units.create(IMAGE)
    const bytes = new Uint8Array([0xff, 0x00, 0xfe, 0x80])
    await unit.files.write('/tmp/bytes', bytes)
    const seen: number[] = []
    for await (const piece of unit.spawn(['cat', '/tmp/bytes']).output) seen.push(...piece.bytes)
    expect(seen).toEqual([...bytes])
  })
})

describe('a file', () => {
  it('is written and read as text and as bytes', async () => {
    await using unit = await berth.units.create(IMAGE)
    expect(await unit.files.write('/app/größe.txt', 'größe\n')).toMatchObject({ bytes: 8, verified: true })
    expect(await unit.files.readText('/app/größe.txt')).toBe('größe\n')
    const bytes = crypto.getRandomValues(new Uint8Array(10_000))
    await unit.files.write('/app/bytes', new Blob([bytes]))
    expect(await unit.files.read('/app/bytes')).toEqual(bytes)
    expect(await thrownBy(unit.files.read('/app/nowhere'))).toMatchObject({ code: 'not_found', status: 404 })
  })
})

describe('a directory', () => {
  it('is listed in pages, archived, unpacked in another unit, and deleted', async () => {
    await using unit = await berth.units.create(IMAGE)
    await using other = await berth.units.create(IMAGE)
    for (const name of ['a', 'b', 'c']) await unit.files.write(`/app/${name}.txt`, name)
    const names: string[] = []
    for await (const { name } of unit.files.list('/app', { limit: 2 })) names.push(name)
    expect(names).toEqual(['a.txt', 'b.txt', 'c.txt'])
    const archive = await new Response(await unit.files.archive('/app')).bytes()
    await other.files.unpack('/copy', archive)
    expect(await other.files.readText('/copy/b.txt')).toBe('b')
    await unit.files.delete('/app/a.txt')
    expect(await thrownBy(unit.files.delete('/app'))).toBeInstanceOf(BerthError)
    await unit.files.delete('/app', { recursive: true })
    expect(await thrownBy(unit.files.read('/app/b.txt'))).toMatchObject({ code: 'not_found' })
  })
})

describe('events', () => {
  it('report changes until the caller aborts', async () => {
    const controller = new AbortController()
    const heard: string[] = []
    const listening = (async () => {
      for await (const { event, data } of berth.events({ changes: true, signal: controller.signal })) {
        if (event === 'change') heard.push(data.sentence)
        else heard.push(event === 'unit' ? `unit ${data.name}` : event)
      }
    })()
    await expect.poll(() => heard).toContain('reset')
    await using unit = await berth.units.create({ image: IMAGE, name: 'heard-of' })
    await expect.poll(() => heard).toContain(`unit ${unit.name}`)
    await expect.poll(() => heard.join()).toContain(` created ${unit.name} `)
    controller.abort(new Error('enough'))
    expect(await thrownBy(listening)).toMatchObject({ message: 'enough' })
  })
})

describe('a log', () => {
  it('is read in lines and followed to the end of the run', async () => {
    await using unit = await berth.units.create({
      image: IMAGE,
      cmd: ['sh', '-c', 'echo one; echo two; sleep infinity'],
    })
    const read = async () => {
      const lines: string[] = []
      for await (const { text } of unit.logs()) lines.push(text)
      return lines
    }
    await expect.poll(read).toEqual(['one', 'two'])
    const followed: string[] = []
    const following = (async () => {
      for await (const { text } of unit.logs({ follow: true })) {
        followed.push(text)
        if (followed.length === 2) service.engine.endProcess(unit.id)
      }
    })()
    await following
    expect(followed).toEqual(['one', 'two'])
  })

  it('is followed across a lost connection without duplicates or gaps', async () => {
    await using unit = await berth.units.create({
      image: IMAGE,
      cmd: ['sh', '-c', 'echo one; echo two; sleep infinity'],
    })
    await expect.poll(async () => (await unit.logPage()).lines.length).toBe(2)
    const flaky = new Berth({ url: service.baseUrl, apiKey: team.key, fetch: cutAfterFirstEvent() })
    const seen: string[] = []
    for await (const { text } of (await flaky.units.get(unit.id)).logs({ follow: true })) {
      seen.push(text)
      if (text === 'two') break
    }
    expect(seen).toEqual(['one', 'two'])
  })
})

/** Breaks the first event stream after its first event, like a lost connection. */
function cutAfterFirstEvent(): Fetch {
  let isCut = false
  return async (url, init) => {
    const response = await fetch(url, init)
    if (isCut || !response.headers.get('content-type')?.startsWith('text/event-stream')) return response
    isCut = true
    const reader = response.body?.getReader()
    let isFirst = true
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        if (!isFirst) return controller.error(new TypeError('terminated'))
        isFirst = false
        const { value } = (await reader?.read()) ?? {}
        const text = new TextDecoder().decode(value)
        controller.enqueue(new TextEncoder().encode(text.slice(0, text.indexOf('\n\n') + 2)))
      },
      cancel: async () => await reader?.cancel(),
    })
    return new Response(body, { status: response.status, headers: response.headers })
  }
}

describe('a background process', () => {
  it('takes input in pieces of any size, and keeps its unit awake as long as that is renewed', async () => {
    await using unit = await berth.units.create(IMAGE)
    const reader = await unit.processes.start(['cat'], { stdin: 'first ', takesInput: true })
    expect((await reader.keepAwake(600_000)).info.awakeUntil).not.toBe(null)
    await reader.keepAwake(0)
    await reader.write('é')
    await reader.write(new Uint8Array(300_000).fill(0xff))
    await reader.endInput()
    expect((await reader.wait()).exitCode).toBe(0)
    expect(reader.info.output.to).toBe(6 + 2 + 300_000)
  })

  it('is started, followed, signalled and deleted', async () => {
    await using unit = await berth.units.create(IMAGE)
    const short = await unit.processes.start('echo out; echo err >&2; exit 3')
    const heard: string[] = []
    for await (const { stream, text } of short.follow()) heard.push(`${stream} ${text}`)
    expect(heard).toEqual(['stdout out\n', 'stderr err\n'])
    expect([short.state, short.exitCode]).toEqual(['exited', 3])
    expect(await short.text()).toEqual({ stdout: 'out\n', stderr: 'err\n' })

    const long = await unit.processes.start(['sleep', 'infinity'], { cwd: '/tmp' })
    expect(long.info.cwd).toBe('/tmp')
    const waited = long.wait()
    await long.signal('KILL')
    expect((await waited).exitCode).toBe(137)
    expect((await unit.processes.list()).map(({ id }) => id)).toEqual([short.id, long.id])
    expect(await unit.metrics()).toMatchObject({
      unitId: unit.id,
      state: 'running',
      run: { cpu: { limitCpus: 0.5 } },
    })
    for await (const { state } of unit.followMetrics()) {
      expect(state).toBe('running')
      break
    }
    await unit.setEgress({ mode: 'none' })
    expect((await unit.allowEgress('a.example.com')).allow).toEqual(['a.example.com'])
    expect(await unit.allowEgress('a.example.com')).toMatchObject({ mode: 'listed', version: 2 })
    for await (const line of unit.egressLog({ decision: 'refused' })) expect(line).toBe('none')
    await short.delete()
    expect(await thrownBy(unit.processes.get(short.id))).toMatchObject({ code: 'not_found' })
  })
})

describe('the SDK', () => {
  it('creates, finds, forks and destroys a stack', async () => {
    const stack = await berth.stacks.create('whole-stack')
    await berth.units.create({ image: IMAGE, name: 'web', stack: stack.name })
    expect((await stack.refresh()).units.map(({ name }) => name)).toEqual(['web'])
    const fork = await stack.fork({ into: 'whole-fork' })
    expect([fork.stack, fork.units.map(({ name }) => name)]).toEqual(['whole-fork', ['web']])
    expect((await berth.stacks.find('whole-fork'))?.units).toHaveLength(1)
    expect(await berth.stacks.find('none')).toBeNull()
    for (const name of ['whole-fork', 'whole-stack']) await (await berth.stacks.find(name))?.destroy()
  })

  it('returns the outputs of a recipe by name', async () => {
    service.engine.onExec(({ argv }) => (argv[0] === 'pg_isready' ? { exitCode: 0 } : null))
    const { unit, outputs } = await berth.recipes.run('postgres', { params: { database: 'shop' } })
    const url: string = outputs.DATABASE_URL
    expect(url).toMatch(/^postgres:\/\/app:.*\/shop$/)
    expect(unit.info.databasePorts).toEqual([{ port: 5432, protocol: 'postgres' }])
    expect((await berth.recipes.list()).map(({ name }) => name)).toContain('postgres')
    expect((await berth.recipes.get('postgres')).outputs.map(({ name }) => name)).toContain('DATABASE_URL')
    await unit.destroy()
  })

  it('iterates over all pages of a list', async () => {
    const other = await makeTeam(service)
    const alone = new Berth({ url: service.baseUrl, apiKey: other.key })
    for (const name of ['a', 'b', 'c']) await alone.units.create({ image: IMAGE, name, stack: 'paged' })
    const seen: string[] = []
    for await (const unit of alone.units.list({ limit: 2, stack: 'paged' })) seen.push(unit.name)
    expect(seen.toSorted()).toEqual(['a', 'b', 'c'])
    expect((await alone.units.list({ limit: 2 }).page()).items).toHaveLength(2)
    const audit = await alone.audit({ limit: 2 }).all()
    expect(audit.filter(({ action }) => action === 'unit.create')).toHaveLength(3)
    expect(audit[0]).toMatchObject({ agentName: 'berth-sdk', agentVersion: '0.1.0' })
  })

  it('reads quota, usage, prices, agents and keys', async () => {
    expect((await berth.quota()).units.max).toBeGreaterThan(0)
    expect((await berth.usage({ days: 3 })).days).toHaveLength(3)
    expect((await berth.pricing()).sizes.map(({ size }) => size)).toContain('small')
    expect((await berth.agents()).agents.map(({ id }) => id)).toContain(team.keyId)
    expect((await berth.keys()).map(({ id }) => id)).toContain(team.keyId)
  })
})

describe('an error', () => {
  it('has a code, an HTTP status and a request id', async () => {
    const error = await thrownBy(berth.units.get('unit_nobody'))
    expect(error).toBeInstanceOf(BerthError)
    expect(isBerthError(error, 'not_found')).toBe(true)
    expect(error).toMatchObject({ status: 404, requestId: expect.stringMatching(/./) })
    expect(await thrownBy(berth.units.create({ image: 'NOT AN IMAGE', name: 'x' }))).toMatchObject({
      code: 'validation',
      details: [{ path: 'spec.image', message: expect.any(String) }],
    })
  })

  it('distinguishes a wrong key, an unreachable service and a timeout', async () => {
    const wrong = new Berth({ url: service.baseUrl, apiKey: 'berth_live_wrong' })
    expect(await thrownBy(wrong.quota())).toMatchObject({ code: 'unauthorized', status: 401 })
    const nobody = new Berth({ url: 'http://127.0.0.1:9', apiKey: team.key, retries: 0 })
    expect(await thrownBy(nobody.quota())).toMatchObject({ code: 'connection_failed', status: null })
    const silent = createServer()
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const late = new Berth({ url, apiKey: team.key, timeoutMs: 20 })
    expect(await thrownBy(late.quota())).toMatchObject({ code: 'timed_out', status: null })
    silent.close()
  })
})
