// Egress rules in the whole product (decisions/egress.md): the process that decides by name starts when a unit first needs
// it.

import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { EgressInForce } from '../../src/contract/egress.ts'
import type { EgressLogPage } from '../../src/contract/egress-log.ts'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { MachineEgress } from '../../src/engine/egress.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { askEngineEpoch, connectEngine } from '../../src/engine/ipc/client.ts'
import { engineSocketOf } from '../../src/processes/channel.ts'
import { loadInstance, runDirOf } from '../../src/supervisor/instance.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { processesHolding } from '../support/unit-memory.ts'
import { isDeep, usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_READY_MACHINES: '1' })
const listed: MachineEgress = {
  mode: 'listed',
  allow: ['a.example.com'],
  siblings: 'none',
  stack: null,
  secrets: [],
}

let engine: Engine

beforeAll(async () => {
  const address = { socketPath: engineSocketOf(runDirOf(await loadInstance(berth.dataDir))) }
  engine = connectEngine({ address, epoch: await askEngineEpoch(address), onLost: () => {} })
})

describe('a restricted unit', () => {
  it('is refused by name once it is restricted, and again after the process was killed', async () => {
    const unit = await createUnit(berth, {
      name: 'shut',
      image: 'berth.local/debian:12',
      size: 'nano',
    })
    const ask = async () => {
      const script = `exec 3<>/dev/tcp/203.0.113.10/80; printf 'GET / HTTP/1.1\\r\\nHost: b.example.com\\r\\n\\r\\n' >&3; cat <&3`
      return (await exec(berth, unit, ['timeout', '5', 'bash', '-c', script])).stdout
    }
    await engine.restrict({ id: unit.id, generation: 1 }, listed)
    expect(await ask()).toMatch(/403 Forbidden[^]*egress_refused[^]*b\.example\.com/)
    expect((await exec(berth, unit, ['getent', 'hosts', 'b.example.com'])).exitCode).not.toBe(0)

    const pid = await berth.pidOf('egress')
    process.kill(pid ?? 0, 'SIGKILL')
    expect(await ask()).toBe('')
    await expect.poll(ask, { timeout: 20_000, interval: 500 }).toContain('egress_refused')
    await delay(100)
    expect(await berth.pidOf('egress')).not.toBe(pid)
  })

  it('that finds a machine made ahead is restricted before its first instruction', async () => {
    const spec = { image: 'berth.local/debian:12', size: 'small' }
    await createUnit(berth, { ...spec, name: 'first' })
    const ready = async () => (await engine.capacity()).readyMachines
    await expect.poll(async () => (await ready())?.waiting, { timeout: 30_000 }).toBeGreaterThan(0)
    await delay(2000)
    const hits = (await ready())?.hits ?? 0
    const script = `exec 3<>/dev/tcp/203.0.113.10/80; printf 'GET / HTTP/1.1\\r\\nHost: b.example.com\\r\\n\\r\\n' >&3; timeout 5 cat <&3; sleep 99`
    const unit = await createUnit(berth, {
      ...spec,
      name: 'early',
      cmd: ['bash', '-c', script],
      egress: { mode: 'listed', allow: ['a.example.com'], siblings: 'none' },
    })
    expect((await ready())?.hits).toBe(hits + 1)
    const printed = async () =>
      (await berth.call<{ lines: { text: string }[] }>('GET', `/v1/units/${unit.id}/logs`)).body.lines
        .map(({ text }) => text)
        .join('\n')
    await expect
      .poll(printed, { timeout: 20_000, interval: 200 })
      .toMatch(/egress_refused[^]*b\.example\.com/)
  })
})

describe.each(usualClasses)('the log of a restricted unit in %s', (isolation) => {
  it('has what was refused and why, and the name that is added is not refused any more', async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
    const spec = { name: `logged-${isolation}`, image: 'berth.local/debian:12', size: 'nano' }
    const egress = { mode: 'listed', allow: ['a.example.com'], siblings: 'none' }
    const unit = await createUnit(berth, { ...spec, egress })
    const log = `/v1/units/${unit.id}/egress/log`
    const script = `getent hosts c.example.com; for host in b.example.com a.example.com; do
      exec 3<>/dev/tcp/203.0.113.10/80; printf 'GET / HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' $host >&3; timeout 20 cat <&3; done`
    const { stdout } = await exec(berth, unit, ['bash', '-c', script])
    expect(stdout).toContain(String.raw`Ask the owner of the unit to allow \"b.example.com\"`)
    // A client of QUIC learns at once that it is refused, in a sandbox too, and goes on by TCP.
    const quic = 'exec 3<>/dev/udp/203.0.113.10/443; echo hello >&3; read -r -t 20 <&3'
    expect((await exec(berth, unit, ['bash', '-c', quic])).stderr).toContain('Connection refused')
    const lines = async () =>
      (await berth.call<EgressLogPage>('GET', log)).body.lines.map(
        ({ host, port, decision, entry }) => `${decision} ${host} ${port} ${entry}`,
      )
    await expect.poll(lines, { timeout: 20_000, interval: 500 }).toEqual(
      expect.arrayContaining([
        'refused c.example.com null c.example.com',
        'refused b.example.com 80 b.example.com',
        // No nameserver of this host knows it.
        'refused a.example.com 80 null',
      ]),
    )
    const rules = { ...egress, allow: ['a.example.com', 'b.example.com'] }
    expect((await berth.call('PUT', `/v1/units/${unit.id}/egress`, rules)).status).toBe(200)
    const { next } = (await berth.call<EgressLogPage>('GET', log)).body
    await exec(berth, unit, ['bash', '-c', script])
    await expect
      .poll(async () => (await berth.call<EgressLogPage>('GET', `${log}?since=${next}`)).body.lines, {
        timeout: 20_000,
        interval: 500,
      })
      .toEqual(expect.arrayContaining([expect.objectContaining({ host: 'b.example.com', entry: null })]))
  }, 240_000)

  it.skipIf(!isDeep)(
    'holds in the copies of a stack, whose units then have rules and placeholders of their own',
    async () => {
      const value = 'sk-live-0123456789abcdef'
      // It asks for a name that is not listed all the time, and so in a copy with its memory from the first packet on.
      const program = `use IO::Socket::INET; $SIG{TERM} = sub { exit }; $SIG{CHLD} = 'IGNORE';
      if (!fork) { while (1) { if (my $s = IO::Socket::INET->new(PeerAddr => '203.0.113.10', PeerPort => 80, Timeout => 3)) {
        print $s "GET / HTTP/1.1\\r\\nHost: b.example.com\\r\\n\\r\\n"; my $line = <$s>;
        open my $f, '>>', '/tmp/said'; print $f $line if defined $line } select undef, undef, undef, 0.05 } }
      my $l = IO::Socket::INET->new(Listen => 9, LocalPort => 7000, ReuseAddr => 1) or die;
      while (1) { my $c = $l->accept or next; print $c "here\\n" }`
      const make = async (name: string, siblings: string) =>
        await createUnit(
          berth,
          {
            name,
            image: 'berth.local/debian:12',
            size: 'nano',
            entrypoint: ['perl', '-e', program],
            env: { KEY: { secret: 'KEY', value, hosts: ['a.example.com'] } },
            egress: { mode: 'listed', allow: ['a.example.com'], siblings },
          },
          `pair-${isolation}`,
        )
      const [front, back] = [await make('front', 'stack'), await make('back', 'none')]
      const forked = await berth.call<ForkResult>('POST', `/v1/stacks/${front.stackId}/fork`, {})
      expect(forked.status, JSON.stringify(forked.body)).toBe(201)
      const copyOf = ({ name }: Unit): Unit => {
        const copy = forked.body.units.find((unit) => unit.name === name)
        if (!copy) throw new Error(`no copy of ${name}`)
        return copy
      }
      const said = async (unit: Unit, script: string) =>
        (await exec(berth, unit, ['bash', '-c', script])).stdout
      const reach = (host: string) => `exec 3<>/dev/tcp/${host}/7000 && head -1 <&3`
      await expect
        .poll(async () => await said(copyOf(front), reach('back')), { timeout: 20_000 })
        .toBe('here\n')
      expect(await said(copyOf(back), reach('front'))).toBe('')
      expect(await said(copyOf(front), reach(back.internalHost))).toBe('')

      expect((await berth.call('PUT', `/v1/units/${front.id}/egress`, { mode: 'open' })).status).toBe(200)
      for (const unit of [copyOf(front), copyOf(back)]) {
        const { body } = await berth.call<EgressInForce>('GET', `/v1/units/${unit.id}/egress`)
        expect(body).toMatchObject({
          mode: 'listed',
          allow: ['a.example.com'],
          appliedAt: expect.any(String),
        })
        await expect
          .poll(async () => await said(unit, 'sort -u /tmp/said'), { timeout: 20_000 })
          .toBe('HTTP/1.1 403 Forbidden\r\n')
        const key = await said(unit, 'printf %s "$KEY"')
        expect(key).toMatch(/^berth_secret_/)
        expect(await processesHolding(unit.id, key)).not.toEqual([])
        expect(await processesHolding(unit.id, value)).toEqual([])
      }
    },
    240_000,
  )
})
