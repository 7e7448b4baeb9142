// GET /v1/units/{id}/exec over a WebSocket: interactive commands, with the in-memory engine (docs/terminal.md).

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'
import { openedTerminal, openTerminal, type Terminal } from '../support/terminal.ts'

let service: Service
let team: TestTeam
let unit: Unit
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  unit = await makeUnit(service, team)
})
afterAll(async () => await service.close())

const urlOf = (query = '', id = unit.id) => `${service.baseUrl}/v1/units/${id}/exec${query}`
const bearer = () => ({ authorization: `Bearer ${team.key}` })
const open = async (query = '', id = unit.id): Promise<Terminal> =>
  await openedTerminal(urlOf(query, id), { headers: bearer() })
const refusal = async (query: string, headers: Record<string, string>, id = unit.id) =>
  await openTerminal(urlOf(query, id), { headers })
const shows = async (terminal: Terminal, text: string, stream?: 1 | 2) =>
  await expect.poll(() => terminal.printed(stream)).toContain(text)
const read = async (id: string) =>
  (await service.call<Unit>('GET', `/v1/units/${id}`, { key: team.key })).body

type Row = { id: string; target: string; status: number; input: unknown }
const rowsOf = async (action: string): Promise<Row[]> =>
  (await service.call<{ events: Row[] }>('GET', `/v1/audit?action=${action}`, { key: team.key })).body.events

describe('a terminal', () => {
  it('runs a shell, echoes input, prints output, and ends with the exit code', async () => {
    const terminal = await open()
    expect(terminal.headers['x-request-id']).toMatch(/^req_/)
    await shows(terminal, '$ ')
    terminal.type('echo hello\r')
    await shows(terminal, 'echo hello\r\nhello\r\n')
    terminal.type('exit 7\r')
    expect(await terminal.closed).toBe(1000)
    expect(terminal.told()).toEqual([{ exit: { exitCode: 7, timedOut: false } }])
  })

  it('says which pid its command has where that is asked for, before its output', async () => {
    const terminal = await open('?pid=1&tty=0&cmd=id&cmd=-u&user=daemon')
    expect(await terminal.closed).toBe(1000)
    const exit = { exit: { exitCode: 0, timedOut: false } }
    expect(terminal.told()).toEqual([{ pid: expect.any(Number) }, exit])
    expect(terminal.printed(1)).toBe('1\n')
  })

  it('has the size it was opened with, and can be resized', async () => {
    const terminal = await open('?cols=100&rows=30')
    terminal.type('stty size\r')
    await shows(terminal, '30 100')
    terminal.sendJson({ resize: [120, 40] })
    terminal.type('stty size\r')
    await shows(terminal, '40 120')
    terminal.type('exit\r')
    await terminal.closed
  })

  it('sends no output while the client has paused it, and all of it afterwards', async () => {
    const terminal = await open()
    await shows(terminal, '$ ')
    terminal.sendJson({ pause: true })
    terminal.type('echo kept\r')
    const answered = new Promise((resolve) => terminal.socket.once('pong', resolve))
    terminal.socket.ping()
    await answered
    expect(terminal.printed()).toBe('$ ')
    terminal.sendJson({ pause: false })
    await shows(terminal, 'kept')
    terminal.type('exit 3\r')
    await terminal.closed
    expect(terminal.told()).toEqual([{ exit: { exitCode: 3, timedOut: false } }])
  })

  it('sends a signal to its command', async () => {
    const terminal = await open('?cmd=sleep&cmd=1000')
    terminal.sendJson({ signal: 'INT' })
    await terminal.closed
    expect(terminal.told()).toEqual([{ exit: { exitCode: 130, timedOut: false } }])
  })

  it('without a TTY separates stderr, and ends with its input', async () => {
    const query = new URLSearchParams([
      ['tty', '0'],
      ['cmd', 'sh'],
      ['cmd', '-c'],
      ['cmd', 'echo out; echo err >&2; echo $SHIP'],
      ['env', 'SHIP=a=b'],
    ])
    const terminal = await open(`?${query.toString()}`)
    await terminal.closed
    expect([terminal.printed(1), terminal.printed(2)]).toEqual(['out\na=b\n', 'err\n'])
    const cat = await open('?tty=0&cmd=cat')
    cat.type('through')
    await shows(cat, 'through')
    cat.sendJson({ eof: true })
    await cat.closed
    expect(cat.told()).toEqual([{ exit: { exitCode: 0, timedOut: false } }])
  })

  it('has one audit row with the names of its environment and not the values', async () => {
    const before = (await rowsOf('unit.terminal')).length
    const terminal = await open('?tty=0&cmd=true&env=TOKEN%3Dverysecret')
    await terminal.closed
    await expect.poll(async () => (await rowsOf('unit.terminal')).length).toBe(before + 1)
    const [row] = await rowsOf('unit.terminal')
    expect(row).toMatchObject({ target: unit.id, status: 101 })
    expect(row?.input).toMatchObject({ tty: false, cmd: ['true'], env: ['TOKEN'] })
    expect(JSON.stringify(row)).not.toContain('verysecret')
  })

  it('kills its command when the client disconnects', async () => {
    const terminal = await open('?cmd=sleep&cmd=1000')
    const [row] = await rowsOf('unit.terminal')
    expect(row?.status).toBe(null)
    terminal.socket.terminate()
    await expect
      .poll(async () => (await rowsOf('unit.terminal'))[0])
      .toMatchObject({ id: row?.id, status: 499 })
  })

  it('wakes a sleeping unit, and is closed when the unit is stopped', async () => {
    const sleeper = await makeUnit(service, team)
    await service.call('POST', `/v1/units/${sleeper.id}/sleep`, {
      key: team.key,
      body: { sleep: '30m', now: true },
    })
    const terminal = await open('', sleeper.id)
    await shows(terminal, '$ ')
    expect((await read(sleeper.id)).state).toBe('running')
    await service.call('POST', `/v1/units/${sleeper.id}/stop`, { key: team.key })
    expect(await terminal.closed).toBe(1008)
    expect(terminal.told()).toMatchObject([{ error: { code: 'invalid_state' } }])
  })

  it('stays open while its unit falls asleep, and the next key wakes the unit', async () => {
    const sleeper = await makeUnit(service, team, { sleep: '1m' })
    const terminal = await open('', sleeper.id)
    await shows(terminal, '$ ')
    service.clock.advance(2 * MINUTE)
    await expect.poll(async () => (await read(sleeper.id)).state).toBe('sleeping')
    terminal.type('echo back\r')
    await expect.poll(async () => (await read(sleeper.id)).state).toBe('running')
    terminal.socket.terminate()
  })
})

describe('opening a terminal is refused', () => {
  it('without credentials, and with wrong ones', async () => {
    for (const headers of [{}, { authorization: 'Bearer brt_nobody' }])
      expect(await refusal('', headers)).toMatchObject({
        status: 401,
        body: { error: { code: 'unauthorized' } },
      })
  })

  it('in a unit of another team, and in an unknown one', async () => {
    const other = await makeTeam(service)
    const theirs = await makeUnit(service, other)
    expect(await refusal('', bearer(), theirs.id)).toMatchObject({ status: 403 })
    expect(await refusal('', bearer(), 'u_0000000000')).toMatchObject({ status: 404 })
  })

  it('with an invalid query', async () => {
    const queries = [
      '?cols=0',
      '?rows=1001',
      '?cols=x',
      '?tty=2',
      '?cwd=tmp',
      '?env=novalue',
      '?cmd=',
      '?nope=1',
    ]
    for (const query of queries) expect(await refusal(query, bearer())).toMatchObject({ status: 400 })
  })

  it('to a session, unless it comes from a page of this server', async () => {
    const cookie = await makeSession(service, team)
    for (const from of [{}, { origin: 'https://evil.test' }])
      expect(await refusal('', { cookie, ...from })).toMatchObject({ status: 403 })
    const terminal = await openedTerminal(urlOf(), { headers: { cookie, origin: 'http://berth.test' } })
    await shows(terminal, '$ ')
    terminal.socket.terminate()
  })

  it.each(['8', '7', '13, 8', ''])(
    'by version "%s" of the WebSocket protocol, with the version that is spoken',
    async (version) => {
      const asked = request(urlOf(), {
        headers: {
          ...bearer(),
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': version,
          'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
        },
      })
      asked.end()
      const [answer] = (await once(asked, 'response')) as [IncomingMessage]
      expect([answer.statusCode, answer.headers['sec-websocket-version']]).toEqual([426, '13'])
      expect(await json(answer)).toMatchObject({ error: { code: 'upgrade_required' } })
    },
  )

  it('without a WebSocket upgrade', async () => {
    const answer = await service.call('GET', `/v1/units/${unit.id}/exec`, { key: team.key })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
  })
})

describe('a terminal client', () => {
  it('that cannot send headers may send its bearer as a WebSocket protocol', async () => {
    const offered = `base64url.bearer.authorization.berth.${Buffer.from(team.key).toString('base64url')}`
    const terminal = await openedTerminal(urlOf(), { protocols: ['berth.v1', offered] })
    expect(terminal.socket.protocol).toBe('berth.v1')
    await shows(terminal, '$ ')
    terminal.socket.terminate()
  })

  it('that sends an invalid message gets an error, and its command ends', async () => {
    const messages = [
      Buffer.from([9, 1]),
      Buffer.from([]),
      '{"resize":[0,1]}',
      '{"signal":"STOP"}',
      'no json',
      '{"eof":false}',
    ]
    for (const message of messages) {
      const terminal = await open()
      terminal.socket.send(message)
      expect(await terminal.closed).toBe(1008)
      expect(terminal.told()).toMatchObject([{ error: { code: 'validation' } }])
    }
  })

  it('with another upgrade or another path is answered as without an upgrade', async () => {
    const ask = async (path: string, upgrade: string) =>
      await new Promise<number>((resolve, reject) => {
        const asked = request(service.baseUrl + path, {
          headers: { ...bearer(), connection: 'upgrade', upgrade },
        })
        asked.once('response', (answer) => resolve(answer.resume().statusCode ?? 0))
        asked.once('upgrade', () => reject(new Error('it was upgraded')))
        asked.once('error', reject).end()
      })
    expect(await ask(`/v1/units/${unit.id}`, 'websocket')).toBe(200)
    expect(await ask(`/v1/units/${unit.id}/exec`, 'h2c')).toBe(400)
  })

  it('with a revoked key is disconnected', async () => {
    const mine = await makeTeam(service)
    const own = await makeUnit(service, mine)
    const headers = { authorization: `Bearer ${mine.key}` }
    const terminal = await openedTerminal(urlOf('', own.id), { headers })
    await shows(terminal, '$ ')
    const cookie = await makeSession(service, mine)
    const revoked = await service.call('DELETE', `/v1/keys/${mine.keyId}`, {
      cookie,
      headers: { origin: 'http://berth.test' },
    })
    expect(revoked.status).toBeLessThan(300)
    const cut = terminal.closed.then((code) => code)
    let isCut = false
    cut
      .then(() => {
        isCut = true
      })
      .catch(() => {})
    await expect
      .poll(() => {
        service.clock.advance(5000)
        return isCut
      })
      .toBe(true)
  })
})
