// Terminals that outlive their client (docs/terminal.md), with the in-memory engine.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { limits } from '../../src/contract/limits.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'
import { openedTerminal, type Terminal } from '../support/terminal.ts'

let service: Service
let team: TestTeam
let unit: Unit
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  unit = await makeUnit(service, team)
})
afterAll(async () => await service.close())

const open = async (query: string, { id = unit.id, headers = {} } = {}): Promise<Terminal> =>
  await openedTerminal(`${service.baseUrl}/v1/units/${id}/exec${query}`, {
    headers: { authorization: `Bearer ${team.key}`, ...headers },
  })
const shows = async (terminal: Terminal, text: string) =>
  await expect.poll(() => terminal.printed()).toContain(text)
const leave = async (terminal: Terminal) => {
  terminal.socket.terminate()
  await terminal.closed
}
/** Advances the time until it is so. */
const after = async (isSo: () => boolean, ms: number) =>
  await expect
    .poll(() => {
      service.clock.advance(ms)
      return isSo()
    })
    .toBe(true)

describe('a terminal session', () => {
  it('goes on without its client, and shows the next one what was printed', async () => {
    const first = await open('?session=work&pid=1&env=PLACE%3Dharbour')
    first.type('echo before\r')
    await shows(first, 'before\r\n')
    await leave(first)
    const second = await open('?session=work&pid=1')
    await shows(second, 'before\r\n')
    second.type('echo at the $PLACE\r')
    await shows(second, 'at the harbour\r\n')
    expect(second.told()).toEqual(first.told())
    second.type('exit 4\r')
    expect(await second.closed).toBe(1000)
    expect(second.told()).toContainEqual({ exit: { exitCode: 4, timedOut: false } })

    const third = await open('?session=work')
    await shows(third, '$ ')
    expect(third.printed()).not.toContain('before')
    third.type('exit\r')
    await third.closed
  })

  it('gets the size of the client that attaches', async () => {
    await leave(await open('?session=size&cols=100&rows=30'))
    const again = await open('?session=size&cols=132&rows=43')
    again.type('stty size\r')
    await shows(again, '43 132')
    again.type('exit\r')
    await again.closed
  })

  it('is taken over by a later client, and the earlier one is told', async () => {
    const first = await open('?session=taken')
    await shows(first, '$ ')
    const second = await open('?session=taken')
    expect(await first.closed).toBe(1008)
    expect(first.told()).toMatchObject([{ error: { code: 'conflict' } }])
    second.type('echo mine\r')
    await shows(second, 'mine\r\n')
    second.type('exit\r')
    await second.closed
  })

  it('is another one for another name, another unit and another credential', async () => {
    const other = await makeUnit(service, team)
    const cookie = await makeSession(service, team)
    const mine = await open('?session=same')
    mine.type('echo secret of mine\r')
    await shows(mine, 'secret of mine\r\n')
    const person = await openedTerminal(`${service.baseUrl}/v1/units/${unit.id}/exec?session=same`, {
      headers: { cookie, origin: 'http://berth.test' },
    })
    const others = [await open('?session=other'), await open('?session=same', { id: other.id }), person]
    for (const terminal of others) {
      await shows(terminal, '$ ')
      expect(terminal.printed()).not.toContain('secret')
      terminal.type('exit\r')
      await terminal.closed
    }
    mine.type('exit\r')
    await mine.closed
  })

  it('is the same one for a person in another browser', async () => {
    const at = async () =>
      await openedTerminal(`${service.baseUrl}/v1/units/${unit.id}/exec?session=mine`, {
        headers: { cookie: await makeSession(service, team), origin: 'http://berth.test' },
      })
    const laptop = await at()
    laptop.type('echo begun\r')
    await shows(laptop, 'begun\r\n')
    await leave(laptop)
    const desk = await at()
    await shows(desk, 'begun\r\n')
    desk.type('exit\r')
    await desk.closed
  })

  it('ends after ten minutes without a client, counted from the last one', async () => {
    const first = await open('?session=left&env=X%3Dkept')
    await shows(first, '$ ')
    await leave(first)
    service.clock.advance(9 * MINUTE)
    const second = await open('?session=left')
    second.type('echo is $X\r')
    await shows(second, 'is kept\r\n')
    // The time of the first absence is over.
    service.clock.advance(5 * MINUTE)
    second.type('echo still $X\r')
    await shows(second, 'still kept\r\n')
    await leave(second)
    // Until the service has seen that the client is gone.
    await expect
      .poll(async () => {
        service.clock.advance(limits.terminalDetachedMs + SECOND)
        const again = await open('?session=left')
        await shows(again, '$ ')
        again.type('echo "[$X]"\r')
        await shows(again, ']\r\n')
        const isNew = again.printed().includes('[]')
        await leave(again)
        return isNew
      })
      .toBe(true)
  })

  it('is refused where a unit has sixteen, until one has ended', async () => {
    const crowded = await makeUnit(service, team)
    const names = Array.from({ length: limits.terminalSessions }, (_, index) => `s${index}`)
    const terminals = await Promise.all(
      names.map(async (name) => await open(`?session=${name}`, { id: crowded.id })),
    )
    for (const terminal of terminals) await shows(terminal, '$ ')
    const refused = await open('?session=more', { id: crowded.id })
    expect(await refused.closed).toBe(1008)
    expect(refused.told()).toMatchObject([{ error: { code: 'conflict' } }])
    terminals[0]?.type('exit\r')
    await terminals[0]?.closed
    const more = await open('?session=more', { id: crowded.id })
    await shows(more, '$ ')
    for (const terminal of [...terminals.slice(1), more]) await leave(terminal)
  })

  it('ends when its unit is stopped, also without a client', async () => {
    const stopped = await makeUnit(service, team)
    const first = await open('?session=s&env=X%3Dold', { id: stopped.id })
    await shows(first, '$ ')
    await leave(first)
    for (const action of ['stop', 'start'])
      await service.call('POST', `/v1/units/${stopped.id}/${action}`, { key: team.key })
    const second = await open('?session=s', { id: stopped.id })
    await shows(second, '$ ')
    second.type('echo "[$X]"\r')
    await shows(second, '[]\r\n')
    second.type('exit\r')
    await second.closed
  })

  it('ends with the key that it was opened with', async () => {
    const mine = await makeTeam(service)
    const own = await makeUnit(service, mine)
    const headers = { authorization: `Bearer ${mine.key}` }
    const terminal = await open('?session=s', { id: own.id, headers })
    await shows(terminal, '$ ')
    const cookie = await makeSession(service, mine)
    const revoked = await service.call('DELETE', `/v1/keys/${mine.keyId}`, {
      cookie,
      headers: { origin: 'http://berth.test' },
    })
    expect(revoked.status).toBeLessThan(300)
    let isCut = false
    void terminal.closed.then(() => {
      isCut = true
    })
    await after(() => isCut, 5 * SECOND)
    expect(terminal.told()).toMatchObject([{ error: { code: 'unauthorized' } }])
  })

  it('has a name of letters, digits, "-" and "_"', async () => {
    for (const name of ['', 'a b', 'a/b', 'x'.repeat(65), 'ä'])
      await expect(open(`?session=${encodeURIComponent(name)}`)).rejects.toThrow('400')
  })
})
