// Commands, files, logs and lists of units.

import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { limits } from '../../contract/limits.ts'
import type { LogEvent } from '../../contract/logs.ts'
import type { Unit } from '../../contract/unit.ts'
import type { Caller } from '../credentials/caller.ts'
import { destroyUnit } from './destroy.ts'
import { execInUnit } from './exec.ts'
import { deleteFile, listDirectory } from './directories.ts'
import { readFile, writeFile } from './files.ts'
import { listUnits } from './list.ts'
import { followLogs, readLogs } from './logs.ts'
import { stopUnit } from './stop.ts'

let domain: TestDomain
let caller: Caller
let unit: Unit
beforeAll(async () => {
  domain = await createTestDomain()
  caller = await domain.makeCaller()
  unit = await makeUnit(domain.app, caller, { files: { '/etc/app.conf': 'a=1' } })
})
afterAll(async () => await domain.close())

const run = async (...cmd: string[]) =>
  await execInUnit(domain.app, caller, unit.id, { cmd, timeoutMs: 5_000 })

describe('exec', () => {
  it('returns the exit code and both streams apart', async () => {
    expect(await run('sh', '-c', 'echo out; echo err >&2; exit 3')).toEqual({
      exitCode: 3,
      stdout: 'out\n',
      stderr: 'err\n',
      timedOut: false,
      truncated: false,
    })
  })

  it('passes stdin to the command', async () => {
    const request = { cmd: ['cat'], stdin: 'héllo', timeoutMs: 5_000 }
    expect((await execInUnit(domain.app, caller, unit.id, request)).stdout).toBe('héllo')
  })

  it('returns 127 for a command that does not exist', async () => {
    const result = await run('no-such-program')
    expect(result.exitCode).toBe(127)
    expect(result.stderr).toContain('not found')
  })

  it.each([
    [limits.execOutputBytes, false],
    [limits.execOutputBytes + 1, true],
    [20 * limits.execOutputBytes, true],
  ])('cuts %d bytes of output at the limit: truncated is %s', async (bytes, truncated) => {
    const result = await run('head', '-c', String(bytes))
    expect(result).toMatchObject({ exitCode: 0, truncated })
    expect(result.stdout.length).toBe(limits.execOutputBytes)
  })

  it('does not split a character when it cuts the output', async () => {
    domain.engine.onExec(({ argv }) =>
      argv[0] === 'euros' ? { stdout: `x${'€'.repeat(limits.execOutputBytes)}` } : null,
    )
    const { stdout } = await run('euros')
    expect(Buffer.byteLength(stdout)).toBeLessThanOrEqual(limits.execOutputBytes)
    expect(stdout.endsWith('€')).toBe(true)
  })

  it('returns timedOut with the output so far when the time is up', async () => {
    const slow = execInUnit(domain.app, caller, unit.id, {
      cmd: ['sh', '-c', 'echo first; sleep 60'],
      timeoutMs: 50,
    })
    expect(await slow).toMatchObject({ timedOut: true, stdout: 'first\n' })
  })

  it('streams output as it comes when asked to', async () => {
    const chunks: string[] = []
    const result = await execInUnit(
      domain.app,
      caller,
      unit.id,
      { cmd: ['echo', 'streamed'], timeoutMs: 5_000 },
      { onOutput: ({ stream, data }) => void chunks.push(`${stream}:${data.toString()}`) },
    )
    expect(chunks).toEqual(['stdout:streamed\n'])
    expect(result).toMatchObject({ exitCode: 0, stdout: '', truncated: false })
  })

  it('is refused with 409 when the unit is destroyed meanwhile', async () => {
    const other = await makeUnit(domain.app, caller, { name: 'other' })
    const release = domain.engine.hang('exec')
    const running = execInUnit(domain.app, caller, other.id, { cmd: ['true'], timeoutMs: 5_000 })
    await expect.poll(() => domain.engine.calls.at(-1)?.operation).toBe('exec')
    await destroyUnit(domain.app, caller, other.id)
    release()
    await expect(running).rejects.toMatchObject({ status: 409, code: 'invalid_state' })
  })
})

describe('files', () => {
  it('are written, verified and read back', async () => {
    const content = Buffer.from([0, 1, 2, 255])
    const written = await writeFile(domain.app, caller, unit.id, '/tmp/data', content)
    expect(written).toEqual({
      path: '/tmp/data',
      bytes: 4,
      sha256: createHash('sha256').update(content).digest('hex'),
      verified: true,
    })
    expect(await readFile(domain.app, caller, unit.id, '/tmp/data')).toEqual({
      path: '/tmp/data',
      contentBase64: content.toString('base64'),
      mode: '0644',
    })
  })

  it('that are boot files are written with a warning', async () => {
    const { warning } = await writeFile(domain.app, caller, unit.id, '/etc/app.conf', Buffer.from('a=2'))
    expect(warning).toContain('boot file')
  })

  it('are limited to 1 MB in both directions', async () => {
    const most = Buffer.alloc(limits.fileBytes)
    expect((await writeFile(domain.app, caller, unit.id, '/tmp/most', most)).bytes).toBe(limits.fileBytes)
    await expect(
      writeFile(domain.app, caller, unit.id, '/tmp/more', Buffer.alloc(limits.fileBytes + 1)),
    ).rejects.toMatchObject({ status: 400, code: 'validation' })
    await run('sh', '-c', `head -c ${limits.fileBytes + 1} > /tmp/big`)
    await expect(readFile(domain.app, caller, unit.id, '/tmp/big')).rejects.toMatchObject({ status: 400 })
  })

  it('that do not exist return 404, and directories 400', async () => {
    await expect(readFile(domain.app, caller, unit.id, '/tmp/nothing')).rejects.toMatchObject({ status: 404 })
    await expect(readFile(domain.app, caller, unit.id, '/tmp')).rejects.toMatchObject({ status: 400 })
  })

  it('that a busy unit or a large directory keeps waiting return 409 with the path', async () => {
    for (const operation of ['writeFile', 'readFile', 'listDirectory', 'removeFile'] as const)
      domain.engine.fail(operation, 'timeout')
    const busy = { status: 409, code: 'invalid_state', message: expect.stringContaining('/tmp/a: ') }
    const calls = [
      writeFile(domain.app, caller, unit.id, '/tmp/a', Buffer.from('')),
      readFile(domain.app, caller, unit.id, '/tmp/a'),
      listDirectory(domain.app, caller, unit.id, { path: '/tmp/a', limit: 1 }),
      deleteFile(domain.app, caller, unit.id, { path: '/tmp/a', recursive: false }),
    ]
    for (const call of calls) await expect(call).rejects.toMatchObject(busy)
  })

  it('that the unit refuses return 400, and 503 while the engine is down', async () => {
    domain.engine.fail('writeFile', 'file_refused')
    await expect(writeFile(domain.app, caller, unit.id, '/tmp/a', Buffer.from(''))).rejects.toMatchObject({
      status: 400,
    })
    domain.engine.fail('writeFile', 'engine_away')
    await expect(writeFile(domain.app, caller, unit.id, '/tmp/a', Buffer.from(''))).rejects.toMatchObject({
      status: 503,
    })
  })
})

describe('an engine that is down', () => {
  it('makes a create fail with 503 before anything is made', async () => {
    domain.engine.fail('capabilities', 'engine_away')
    await expect(makeUnit(domain.app, caller)).rejects.toMatchObject({ status: 503 })
  })

  it.each(['pull', 'create', 'start'] as const)(
    'at %s delays a create until it is back',
    async (operation) => {
      domain.engine.fail(operation, 'engine_away', { times: 3 })
      expect(await makeUnit(domain.app, caller)).toMatchObject({ state: 'running', error: null })
    },
  )

  it('for longer than a restart makes a create fail with 502', async () => {
    domain.engine.fail('start', 'engine_away', { times: 1_000 })
    const made = expect(makeUnit(domain.app, caller)).rejects.toMatchObject({ status: 502 })
    await new Promise((resolve) => setTimeout(resolve, 300))
    domain.clock.advance(30_000)
    await made
    domain.engine.heal('start')
  })

  it('makes an exec fail with 503 and a time to retry', async () => {
    domain.engine.fail('exec', 'engine_away')
    await expect(run('true')).rejects.toMatchObject({ status: 503, code: 'unavailable', retryAfterS: 2 })
    domain.engine.fail('exec', 'not_running')
    domain.engine.fail('list', 'engine_away')
    await expect(run('true')).rejects.toMatchObject({ status: 503 })
  })
})

describe('logs', () => {
  const query = { limit: 100, follow: false }

  it('are paginated by cursor without lost or repeated lines', async () => {
    const talker = await makeUnit(domain.app, caller, {
      cmd: ['sh', '-c', 'echo 1; echo 2 >&2; echo 3; echo 4; echo 5; sleep infinity'],
    })
    let page = await readLogs(domain.app, caller, talker.id, query)
    while (page.lines.length < 5) page = await readLogs(domain.app, caller, talker.id, query)
    expect(page.lines.map((line) => line.text)).toEqual(['1', '2', '3', '4', '5'])
    expect(page.lines[1]?.stream).toBe('stderr')

    const first = await readLogs(domain.app, caller, talker.id, {
      ...query,
      since: '2000-01-01T00:00:00Z',
      limit: 2,
    })
    const second = await readLogs(domain.app, caller, talker.id, {
      ...query,
      since: first.next ?? '',
      limit: 2,
    })
    const third = await readLogs(domain.app, caller, talker.id, {
      ...query,
      since: second.next ?? '',
      limit: 2,
    })
    const end = await readLogs(domain.app, caller, talker.id, { ...query, since: third.next ?? '', limit: 2 })
    expect([first, second, third, end].map((each) => each.lines.map((line) => line.text))).toEqual([
      ['1', '2'],
      ['3', '4'],
      ['5'],
      [],
    ])
    expect(end.next).toBe(third.next)
    expect(
      (await readLogs(domain.app, caller, talker.id, { ...query, limit: 2 })).lines.map((line) => line.text),
    ).toEqual(['4', '5'])
  })

  it('can be followed until the unit stops, and end with a reason', async () => {
    const talker = await makeUnit(domain.app, caller, { cmd: ['sh', '-c', 'echo hello; sleep infinity'] })
    const events: LogEvent[] = []
    const following = (async () => {
      const signal = new AbortController().signal
      for await (const event of followLogs(domain.app, caller, talker.id, query, signal)) events.push(event)
    })()
    while (events.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    await stopUnit(domain.app, caller, talker.id)
    await following
    expect(events[0]).toMatchObject({ kind: 'line', line: { text: 'hello' } })
    expect(events.at(-1)).toMatchObject({ kind: 'end' })
    expect(events).toHaveLength(2)
  })

  it('of a unit that is being created are empty, and an invalid cursor is refused', async () => {
    await expect(
      readLogs(domain.app, caller, unit.id, { ...query, since: 'nonsense' }),
    ).rejects.toMatchObject({
      status: 400,
      details: [{ path: 'since' }],
    })
    const release = domain.engine.hang('pull')
    const young = await makeUnit(domain.app, caller, {}, { wait: false })
    expect(await readLogs(domain.app, caller, young.id, query)).toEqual({ lines: [], next: null })
    release()
    await eventually(domain.app, caller, young.id, 'running')
  })
})

describe('the list of units', () => {
  it('is sorted newest first, paginated by cursor, and omits destroyed units unless asked', async () => {
    const owner = await domain.makeCaller()
    const made: string[] = []
    for (let index = 0; index < 5; index++) {
      made.push(
        (await makeUnit(domain.app, owner, { name: `u${index}` }, { stack: index < 2 ? 'a' : 'b' })).id,
      )
    }
    const newest = made.toReversed()
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await listUnits(domain.app, owner, {
        all: false,
        limit: 2,
        ...(cursor === undefined ? {} : { cursor }),
      })
      seen.push(...page.units.map((each) => each.id))
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
    expect(seen).toEqual(newest)

    const named = await listUnits(domain.app, owner, { all: false, limit: 10, stack: 'a' })
    expect(named.units.map((each) => each.id)).toEqual(newest.slice(3))
    const byId = await listUnits(domain.app, owner, {
      all: false,
      limit: 10,
      stack: named.units[0]?.stackId ?? '',
    })
    expect(byId.units.map((each) => each.id)).toEqual(newest.slice(3))

    await destroyUnit(domain.app, owner, newest[0] ?? '')
    expect((await listUnits(domain.app, owner, { all: false, limit: 10 })).units).toHaveLength(4)
    expect((await listUnits(domain.app, owner, { all: true, limit: 10 })).units).toHaveLength(5)
  })

  it('shows nothing of another team for any cursor or stack', async () => {
    const stranger = await domain.makeCaller()
    const { next } = await listUnits(domain.app, caller, { all: true, limit: 1 })
    const list = async (query: object) =>
      await listUnits(domain.app, stranger, { all: true, limit: 10, ...query })
    expect((await list({ cursor: next ?? '' })).units).toEqual([])
    await expect(list({ stack: unit.stackId })).rejects.toMatchObject({ status: 403 })
    await expect(list({ stack: 'web' })).rejects.toMatchObject({ status: 404 })
  })

  it('refuses an invalid cursor', async () => {
    for (const cursor of ['', 'x', Buffer.from("unit_' or 1=1").toString('base64url')]) {
      await expect(listUnits(domain.app, caller, { all: false, limit: 1, cursor })).rejects.toMatchObject({
        status: 400,
      })
    }
  })
})
