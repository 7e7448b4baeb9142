// The operator's command for hosts: what it shows, what it decides, and what it refuses with the way out.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import { newId } from '../lib/ids.ts'
import { HOST_TAKEN_OVER } from '../domain/hosts/away.ts'
import { DAY } from '../lib/clock.ts'
import { noteRefusedRenewal, saveCertificatesEnd } from '../store/host-certificates.ts'
import {
  insertHost,
  listHosts,
  meetLocalHost,
  saveHostFacts,
  setHostAway,
  setHostState,
} from '../store/hosts.ts'
import { joinHost } from '../store/joined-hosts.ts'
import { helpOf } from './hosts-help.ts'
import { VERSION } from '../lib/version.ts'
import { linesOnAuthority, tableOfHosts } from './hosts-list.ts'
import { tableOfHostEvents } from './hosts-log.ts'
import { decideAboutHost, type HostVerb } from './hosts-states.ts'
import { parseCommand } from './hosts.ts'

let domain: TestDomain
const now = new Date()

beforeAll(async () => {
  domain = await createTestDomain()
  const { db } = domain.app
  await meetLocalHost(db, { instance: 'here', name: 'here', newId: newId('host') })
  await meetLocalHost(db, { instance: 'gone', name: 'here', newId: newId('host') })
})
afterAll(async () => await domain.close())

const decide = async (verb: HostVerb, name: string) =>
  await decideAboutHost(domain.app, { verb, name, here: 'here', now })
const stateOf = async (name: string) =>
  (await listHosts(domain.app.db)).find((host) => host.name === name)?.state

describe('npm run hosts', () => {
  it('shows each host with what to do; a second data directory of one machine has its instance in its name', async () => {
    const [head, ...rows] = await tableOfHosts(domain.app.db, now, [
      { name: '', instance: 'here', subnet: '10.1.0.0/16' },
      { name: 'east', instance: 'east', subnet: '10.2.0.0/16' },
    ])
    expect(head).toMatch(
      /^host +state +region +engine +addresses +units +free memory +clock +certificates +seen +id +what to do$/,
    )
    expect(rows.map((row) => row.split(/ {2,}/).slice(0, 2))).toEqual([
      ['here', 'ready'],
      ['here-gone', 'ready'],
      ['east', 'unknown'],
    ])
    expect(rows[0]).toContain('10.1.0.0/16')
    expect(rows[2]).toMatch(/10\.2\.0\.0\/16.* the database does not know it: join it again/)
  })

  it('gives up a host that is not this one, and removes it once it has no units', async () => {
    await expect(decide('lost', 'here')).rejects.toThrow('is this machine')
    await expect(decide('remove', 'here-gone')).rejects.toThrow(
      'is for a host that is joining or draining or lost',
    )
    expect(await decide('lost', 'here-gone')).toEqual([expect.stringMatching(/^here-gone is given up/)])
    expect(await stateOf('here-gone')).toBe('lost')
    expect(await decide('remove', 'here-gone')).toEqual(['here-gone is removed.'])
    expect((await tableOfHosts(domain.app.db, now, [])).join('\n')).not.toContain('here-gone')
    await expect(decide('remove', 'here-gone')).rejects.toThrow('There is no host "here-gone"')
  })

  it('logs what the operator decided, with its time', async () => {
    const [head, ...rows] = await tableOfHostEvents(domain.app.db, 'here-gone')
    expect(head).toMatch(/^at +host +it +reason$/)
    expect(rows.map((row) => row.split(/ {2,}/).slice(1, 3))).toEqual([
      ['here-gone', 'was given up'],
      ['here-gone', 'was removed'],
    ])
    expect(await tableOfHostEvents(domain.app.db, 'nobody')).toEqual(['Nothing has happened to a host yet.'])
  })

  it('takes back a host that was given up when Berth starts on its data directory again', async () => {
    await meetLocalHost(domain.app.db, { instance: 'gone', name: 'other', newId: newId('host') })
    expect(await stateOf('here-gone')).toBe('ready')
    await decide('lost', 'here-gone')
  })

  it('says of a host that has joined, or that another server has called, what is to be done there', async () => {
    const { db } = domain.app
    const west = { newId: newId('host'), name: 'west', instance: 'west', address: '10.0.0.3:7075', at: now }
    expect(await joinHost(db, west)).toEqual({ kind: 'joined' })
    const rowOf = async (name: string) =>
      (await tableOfHosts(db, now, [])).find((row) => row.startsWith(name))
    expect(await rowOf('west')).toMatch(
      /joining .* start Berth on it with BERTH_ROLE=host, and .* 10\.0\.0\.3:7075/,
    )
    await setHostState(db, { id: west.newId, from: ['joining'], to: 'ready', at: now })
    await setHostAway(db, { id: west.newId, awaySince: now, reason: HOST_TAKEN_OVER, at: now })
    expect(await rowOf('west')).toMatch(/away .* end the other server, or, if there is none, .* reclaim west/)
    await decide('lost', 'west')
    await decide('remove', 'west')
  })

  it('says until when the certificates of a host are good, when none came, and when it has to join again', async () => {
    const { db } = domain.app
    const far = { id: newId('host'), name: 'north', address: '10.0.0.4:7075', region: null }
    await insertHost(db, far)
    await setHostState(db, { id: far.id, from: ['joining'], to: 'ready', at: now })
    const rowWith = async (days: number, renewedAt: Date | null) => {
      const endsAt = new Date(now.getTime() + days * DAY)
      await saveCertificatesEnd(db, { id: far.id, endsAt, renewedAt })
      const row = (await tableOfHosts(db, now, [])).find((each) => each.startsWith('north'))
      return row?.replace(endsAt.toISOString().slice(0, 10), 'DAY')
    }
    expect(await rowWith(-1, null)).toMatch(/ ended on DAY .* have ended: join it again \(npm run hosts/)
    expect(await rowWith(59, null)).toMatch(
      / until DAY .* are not renewed: npm run hosts -- log north says why/,
    )
    const reason = 'it was given up'
    for (const at of [now, now]) await noteRefusedRenewal(db, { id: far.id, at, reason })
    expect(await rowWith(365, now)).toMatch(/ until DAY .* nothing$/)
    const [, ...rows] = await tableOfHostEvents(db, 'north')
    expect(rows.map((row) => row.split(/ {2,}/).slice(2))).toEqual([
      ['takes units', '-'],
      ['got no new certificates', reason],
      ['has new certificates', '-'],
    ])
    await decide('drain', 'north')
    await decide('remove', 'north')
  })

  it('says when the authority ends, and two years before it that hosts have to join again', () => {
    const endsIn = (days: number) => ({
      endsAt: new Date(now.getTime() + days * DAY),
      replacedFrom: new Date('2035-01-01'),
    })
    expect(linesOnAuthority(null, now)).toEqual([])
    expect(linesOnAuthority(endsIn(731), now).join('\n')).toMatch(/ends on \d{4}-\d\d-\d\d\.$/)
    expect(linesOnAuthority(endsIn(729), now).join('\n')).toContain(
      'From 2035-01-01 on another one takes its place',
    )
  })

  it('refuses to drain the only host that takes units, to give up one that answers, and to remove one that takes units', async () => {
    await expect(decide('drain', 'here')).rejects.toThrow('the only host that takes units')
    const far = { id: newId('host'), name: 'far', address: '10.0.0.2:7075', region: null }
    await insertHost(domain.app.db, far)
    await expect(decide('lost', 'far')).rejects.toThrow('answers, so it is not lost')
    await setHostState(domain.app.db, { id: far.id, from: ['joining'], to: 'ready', at: now })
    await expect(decide('remove', 'far')).rejects.toThrow('First run "npm run hosts -- drain far".')
  })

  it('says of a host with weaker isolation than another one why no new team comes to it', async () => {
    const { db } = domain.app
    const weak = { id: newId('host'), name: 'weak', address: '10.0.0.5:7075', region: null }
    await insertHost(db, weak)
    await setHostState(db, { id: weak.id, from: ['joining'], to: 'ready', at: now })
    const facts = {
      boot: 'boot',
      cpus: 2,
      memoryMb: 2048,
      availableMb: 1024,
      clockOffsetMs: 0,
      version: VERSION,
    }
    const tell = async (name: string, instance: string, classes: string[]) => {
      const { id } = (await listHosts(db)).find((host) => host.name === name) ?? { id: '' }
      await saveHostFacts(db, [{ ...facts, id, instance, classes }])
      return (await tableOfHosts(db, now, [])).find((row) => row.startsWith('weak'))
    }
    expect(await tell('weak', 'weak', ['runc'])).not.toContain('no new teams')
    expect(await tell('here', 'here', ['gvisor', 'runc'])).toMatch(
      /no new teams while another host isolates by gvisor, and this one by runc: npm run doctor on weak/,
    )
    expect(await tell('weak', 'weak', ['gvisor', 'runc'])).not.toContain('no new teams')
  })

  it('says of a host with another version of Berth which one it has', async () => {
    const { db } = domain.app
    const old = { id: newId('host'), name: 'old', address: '10.0.0.6:7075', region: null }
    await insertHost(db, old)
    await setHostState(db, { id: old.id, from: ['joining'], to: 'ready', at: now })
    const facts = { boot: 'boot', classes: [], cpus: 2, memoryMb: 2048, availableMb: 1024, clockOffsetMs: 0 }
    const told = async (version: string | null) => {
      await saveHostFacts(db, [{ ...facts, id: old.id, instance: 'old', version }])
      return (await tableOfHosts(db, now, [])).find((row) => row.startsWith('old'))
    }
    expect(await told('0.0.1')).toContain(
      `it runs Berth 0.0.1, and this machine ${VERSION}: install the same there`,
    )
    expect(await told(VERSION)).toMatch(/ nothing$/)
    expect(await told(null)).toMatch(/ nothing$/)
  })

  it('says of a host with units how it can be removed: drained, away, or given up', async () => {
    const { app } = domain
    const { db } = app
    const caller = await domain.makeCaller()
    const { host } = await makeUnit(app, caller)
    const away = { id: host.id, at: now, reason: null }
    const [{ name } = { name: '' }] = (await listHosts(db)).filter(({ id }) => id === host.id)
    const remove = async (more = {}) =>
      await decideAboutHost(app, { verb: 'remove', name, here: 'other', now, ...more })
    await expect(remove()).rejects.toThrow(/has 1 unit of the team \S+: destroy them first/)
    await expect(remove({ destroysUnits: true })).rejects.toThrow(
      '--destroy-units is for a host that is lost',
    )
    await setHostAway(db, { ...away, awaySince: now })
    await expect(remove()).rejects.toThrow(
      `bring it back, or, if it never comes back, "npm run hosts -- lost ${name}"`,
    )
    await setHostState(db, { id: host.id, from: ['ready'], to: 'lost', at: now })
    await expect(remove()).rejects.toThrow(
      `once they have destroyed them; "npm run hosts -- remove ${name} --destroy-units"`,
    )
    expect((await tableOfHosts(db, now, [])).find((row) => row.startsWith(name))).toContain(
      'once its teams have',
    )
  })

  it.each([
    'list',
    'log',
    'drain',
    'undrain',
    'lost',
    'remove',
    'join-token',
    'check',
    'reclaim',
    'certificate',
  ])('explains %s alone, and what comes after it', (verb) => {
    expect(parseCommand([verb, '--help'])).toEqual({ kind: 'help', of: verb })
    const said = helpOf(verb)
    expect(said).toContain(`${verb}`)
    expect(said.split('npm run hosts -- ').length).toBe(2)
    expect(helpOf(undefined)).toContain(said.split('\n')[0])
  })

  it.each([
    [['lost'], 'say which host'],
    [['drain', 'a', 'b'], '"b" is not expected'],
    [['log', 'a', 'b'], '"b" is not expected'],
    [['list', 'a'], 'list takes nothing else'],
    [['lost', 'a', '--destroy-units'], 'is of remove alone'],
    [
      ['adopt', 'a'],
      'use list, log, drain, undrain, lost, remove, join-token, check, reclaim or certificate',
    ],
    [['reclaim'], 'say which host'],
    [['join-token', 'east', '0.0.0.0:7076'], 'at which the other machine reaches this one'],
  ])('refuses %j with what to type instead', (args, words) => {
    expect(() => parseCommand(args)).toThrow(words)
  })
})
