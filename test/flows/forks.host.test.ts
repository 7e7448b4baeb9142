// Forks real units over the API, in each class: the copies of a stack run, find each other and develop independently, and
// memory survives sleep if the class supports checkpoints. `npm test` covers one of the classes.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { Stack } from '../../src/contract/stack.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { createUnit, destroyAll, exec } from '../support/berth-units.ts'
import { keepsMemory } from '../support/memory-kept.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const image = 'berth.local/debian:12'

/** Counts in memory and answers every connection with its name and the count. */
const counter = [
  'use IO::Socket::INET; $SIG{TERM} = sub { exit }; my $n = 0;',
  'my $s = IO::Socket::INET->new(Listen => 9, LocalPort => 7000, ReuseAddr => 1) or die;',
  'while (1) { my $c = $s->accept or next; $n++; open my $f, "<", "/root/name"; my $name = <$f> // "db";',
  'chomp $name; print $c "$name $n\\n"; close $c }',
].join(' ')
const ready = { cmd: ['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/7000'], timeoutMs: 20_000 }
const ask = (host: string) => ['bash', '-c', `exec 3<>/dev/tcp/${host}/7000; cat <&3`]

const FROZEN_FOR_MS = SECOND

describe.each(usualClasses)('with %s', (isolation) => {
  const berth = useBerth({ BERTH_ISOLATION: isolation, BERTH_FROZEN_FOR: `${FROZEN_FOR_MS / SECOND}s` })
  /** What a fork must copy: memory if the class supports it. */
  const kept = keepsMemory[isolation] ? 'memory' : 'disk'

  beforeAll(async () => {
    const db = { name: 'db', image, entrypoint: ['perl', '-e', counter], healthcheck: ready }
    await createUnit(berth, { ...db, volume: { mount: '/data', gb: 1 } }, 'shop')
    await createUnit(berth, { name: 'app', image, env: { DB: '{{unit:db}}' } }, 'shop')
  })
  afterAll(async () => {
    await destroyAll(berth)
    await expectInvariants(berth)
  })

  const unitsOf = async (stack: string) => {
    const { body } = await berth.call<Stack>('GET', `/v1/stacks/${stack}`)
    return new Map(body.units.map((unit) => [unit.name, unit]))
  }
  const unitOf = async (stack: string, name: string): Promise<Unit> => {
    const unit = (await unitsOf(stack)).get(name)
    if (!unit) throw new Error(`${stack} has no ${name}`)
    return unit
  }
  const said = async (unit: Unit, ...cmd: string[]) => (await exec(berth, unit, cmd)).stdout.trim()
  const countOf = async (unit: Unit, host = '127.0.0.1') =>
    Number((await said(unit, ...ask(host))).split(' ')[1])

  it('a running stack can be forked, and its copies resolve names to each other, not to their sources', async () => {
    const [db, app] = [await unitOf('shop', 'db'), await unitOf('shop', 'app')]
    await said(db, 'bash', '-c', 'echo row > /data/row; echo row > /root/row')
    const before = await countOf(db)
    const { status, body } = await berth.call<ForkResult>('POST', '/v1/stacks/shop/fork', { into: 'trial' })
    expect(status, JSON.stringify(body)).toBe(201)
    // The copy of the application gets a different address in its environment.
    expect(body.copied).toEqual({ db: kept, app: 'disk' })
    const [copy, tester] = [await unitOf('trial', 'db'), await unitOf('trial', 'app')]
    await said(copy, 'bash', '-c', 'echo copy > /root/name')

    expect(await said(tester, 'printenv', 'DB')).toBe('db.trial.internal')
    for (const host of ['db', 'db.trial.internal']) {
      expect(await said(tester, ...ask(host))).toMatch(/^copy \d+$/)
      expect(await said(app, ...ask(host === 'db' ? host : 'db.shop.internal'))).toMatch(/^db \d+$/)
    }
    expect(await said(app, ...ask('db.trial.internal'))).toMatch(/^copy \d+$/)
    const counted = await countOf(copy)
    if (kept === 'memory') expect(counted).toBeGreaterThan(before)
    expect(await said(copy, 'cat', '/data/row', '/root/row')).toBe('row\nrow')
    expect(await said(copy, 'cat', '/run/berth/fork-generation')).toBe('1')
    const machineIds = await Promise.all([db, copy].map((unit) => said(unit, 'cat', '/etc/machine-id')))
    expect(new Set(machineIds).size).toBe(2)
    expect(await countOf(db)).toBeGreaterThan(before)
  })

  it('ten concurrent forks of one unit create ten units', async () => {
    const db = await unitOf('shop', 'db')
    const forks = await Promise.all(
      Array.from({ length: 10 }, () =>
        berth.call<ForkResult>('POST', `/v1/units/${db.id}/fork`, { stack: 'ten' }),
      ),
    )
    expect(forks.map(({ status }) => status)).toEqual(Array<number>(10).fill(201))
    expect(forks.flatMap(({ body }) => Object.values(body.copied))).toEqual(Array<string>(10).fill(kept))
    const copies = forks.flatMap(({ body }) => body.units)
    const addresses = await Promise.all(copies.map((unit) => said(unit, 'hostname', '-I')))
    expect(new Set(addresses).size).toBe(10)
    expect(await berth.call('DELETE', '/v1/stacks/ten')).toMatchObject({ status: 200 })
  })

  it('a hibernated unit continues, and a fork of it sleeps until it is used', async () => {
    const db = await unitOf('shop', 'db')
    const before = await countOf(db)
    await berth.call('POST', `/v1/units/${db.id}/sleep`, { sleep: '1h', now: true })
    const state = async (unit: Unit) => (await berth.call<Unit>('GET', `/v1/units/${unit.id}`)).body.state
    await new Promise((resolve) => setTimeout(resolve, FROZEN_FOR_MS + 8 * SECOND))
    const { body } = await berth.call<ForkResult>('POST', `/v1/units/${db.id}/fork`, { name: 'late' })
    expect(body).toMatchObject({ copied: { late: 'disk' }, units: [{ state: 'sleeping' }] })
    expect(await state(db)).toBe('sleeping')
    const late = await unitOf('shop', 'late')
    expect(await said(late, 'cat', '/data/row')).toBe('row')
    const after = await countOf(db)
    if (kept === 'memory') expect(after).toBeGreaterThan(before)
    else expect(after).toBeGreaterThan(0)
  })
})
