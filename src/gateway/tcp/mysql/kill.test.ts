// KILL with a session id issued by the gateway, in every form that programs send. Everything else passes unchanged.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMysqlSessions } from '../../sessions/mysql-sessions.ts'
import { followKills, translateKill } from './kill.ts'
import { writePacket } from './packets.ts'
import type { Route } from '../../route.ts'

const GIVEN = 4_000_000_007
const ownOf = (given: number) => (given === GIVEN ? 42 : null)
const query = (text: string, kind = 0x03) => Buffer.concat([Buffer.from([kind]), Buffer.from(text)])
const translated = (text: string) => translateKill(query(text), ownOf)?.toString('latin1', 1) ?? null

const run: Route = {
  endpointId: 'ep_1',
  unitId: 'unit_1',
  protocol: 'mysql',
  secretHash: null,
  port: 3306,
  address: '10.0.0.2',
  state: 'running',
  stoppedReason: null,
  frozen: false,
  generation: 3,
}

describe('a KILL statement with an id of the gateway', () => {
  it.each([
    'KILL #',
    'kill #;',
    'KILL QUERY #',
    'KILL CONNECTION # ; ',
    'kill  hard\tquery\n#',
    'KILL SOFT CONNECTION #',
    'KILL /*!50000 QUERY */ #',
    'KILL/*!50000 CONNECTION */#',
    'KILL /*M!100000 QUERY */ #',
    '/* ApplicationName=Bear ** 1.0 */ KILL /* it */ QUERY /**/ #',
  ])('is sent with the server’s own session id: %s', (form) => {
    expect(translated(form.replace('#', String(GIVEN)))).toBe(form.replace('#', '42'))
  })

  it.each([
    'KILL 42',
    'KILL QUERY 4000000008',
    'KILL QUERY ID #',
    'KILL USER #',
    'KILL QUERY #; select 1',
    "select 'KILL #'",
    'KILL QUERY # + 1',
    'KILL#',
    'SHOW PROCESSLIST',
    '/* KILL QUERY # */',
    '/*! KILL QUERY # */',
    'KILL QUERY 1#',
    '',
  ])('is not recognized in a different statement, which passes unchanged: %s', (form) => {
    expect(translated(form.replace('#', String(GIVEN)))).toBeNull()
  })

  it('is translated in a prepared statement and as the KILL command', () => {
    expect(translateKill(query(`KILL ${GIVEN}`, 0x16), ownOf)).toEqual(query('KILL 42', 0x16))
    const command = Buffer.from([0x0c, 0, 0, 0, 0])
    command.writeUInt32LE(GIVEN, 1)
    expect(translateKill(command, ownOf)).toEqual(Buffer.from([0x0c, 42, 0, 0, 0]))
    expect(translateKill(Buffer.from([0x0c, 42, 0, 0, 0]), ownOf)).toBeNull()
    expect(translateKill(command.subarray(0, 4), ownOf)).toBeNull()
  })

  it('is not recognized behind an endless sequence of comments', () => {
    for (const piece of ['/**/', ' ', '/* * / */', '/*/']) expect(translated(piece.repeat(120))).toBeNull()
  })
})

describe('the bytes of a client', () => {
  const sessions = createMysqlSessions()
  sessions.add({ given: GIVEN, own: 42, run })
  const follow = () => followKills(sessions, run)
  const packet = (number: number, payload: Buffer) => writePacket({ number, payload })
  const KILL = query(`KILL QUERY ${GIVEN}`)
  const OWN = query('KILL QUERY 42')

  it('pass unchanged except for translated KILL statements, for any split into chunks', () => {
    const others = fc.oneof(
      fc.constant(KILL),
      fc.uint8Array({ maxLength: 700 }).map((bytes) => Buffer.from(bytes)),
    )
    const sent = fc.array(others, { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(sent, fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), (commands, sizes) => {
        const bytes = Buffer.concat(commands.map((command) => packet(0, command)))
        const expected = commands.map((command) => packet(0, command.equals(KILL) ? OWN : command))
        const { take } = follow()
        const passed: Buffer[] = []
        for (let at = 0, count = 0; at < bytes.length; count += 1) {
          const size = sizes[count % sizes.length] ?? 1
          passed.push(take(bytes.subarray(at, at + size)))
          at += size
        }
        expect(Buffer.concat(passed)).toEqual(Buffer.concat(expected))
      }),
    )
  })

  it('are not translated inside a LOAD DATA file, even if they look like a KILL', () => {
    const { take, answered } = follow()
    const file = Buffer.concat([packet(255, Buffer.from('a line')), packet(0, KILL), packet(1, KILL)])
    expect(take(file)).toEqual(file)
    expect(take(packet(255, Buffer.alloc(0)))).toEqual(packet(255, Buffer.alloc(0)))
    answered()
    expect(take(packet(0, KILL))).toEqual(packet(0, OWN))
  })

  it('can name only live sessions of the same run', () => {
    const of = (route: Route) => followKills(sessions, route).take(packet(0, KILL))
    for (const other of [{ unitId: 'unit_2' }, { generation: 4 }])
      expect(of({ ...run, ...other })).toEqual(packet(0, KILL))
    const end = sessions.add({ given: GIVEN + 1, own: 43, run })
    expect(sessions.find(GIVEN + 1, run)).toBe(43)
    end()
    expect(sessions.find(GIVEN + 1, run)).toBeNull()
  })
})
