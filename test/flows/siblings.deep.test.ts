// Units that depend on each other, on real runtimes: an application with a pooled connection to a database that has fallen
// asleep, in each class and each tier of sleep. `npm test` covers one of the classes.

import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { isolationClasses } from '../../src/engine/engine.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { partOf } from '../support/part-of.ts'
import { untilStopped } from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'

/** Answers every line with `seen LINE` on any number of connections. */
const database = `
  $SIG{TERM} = sub { exit };
  my $listener = IO::Socket::INET->new(Listen => 9, LocalPort => 7000, ReuseAddr => 1) or die;
  while (my $client = $listener->accept) {
    next if fork;
    while (<$client>) { print $client "seen $_" }
    exit;
  }`

/** Keeps one connection to the database; for each line of /ask it writes the answer to /answers. */
const application = `
  $SIG{TERM} = sub { exit };
  my $pooled;
  until ($pooled = IO::Socket::INET->new(PeerAddr => 'db', PeerPort => 7000)) { select undef, undef, undef, 0.1 }
  system 'mkfifo', '/ask';
  open my $answers, '>>', '/answers';
  $answers->autoflush;
  open my $ask, '+<', '/ask';
  while (<$ask>) { print $pooled $_; print $answers scalar <$pooled> }`

/** A command that opens a new connection and asks once. */
const connectAndAsk = `
  my $new = IO::Socket::INET->new(PeerAddr => 'db', PeerPort => 7000, Timeout => 20) or die;
  print $new "anew\\n";
  print scalar <$new>`

const perl = (program: string) => ['perl', '-MIO::Socket::INET', '-e', program]

describe.each(partOf(isolationClasses, 1))('with %s, a database', (isolation) => {
  const berth = useBerth({ BERTH_ISOLATION: isolation, BERTH_FROZEN_FOR: '2s' })
  let db: Unit
  let app: Unit

  const unitOf = async ({ id }: Unit) => (await berth.call<Unit>('GET', `/v1/units/${id}`)).body
  const sleepNow = async ({ id }: Unit) => {
    // Packets sent just before are reported a moment later and would wake it.
    await delay(SECOND / 2)
    const answer = await berth.call('POST', `/v1/units/${id}/sleep`, { sleep: '1m', now: true })
    expect(answer.status).toBe(200)
    expect((await unitOf(db)).state).toBe('sleeping')
  }
  /** Asks over the connection that the application keeps open. */
  const ask = async (what: string) => {
    const wait = `echo ${what} > /ask; until grep -q ${what} /answers; do sleep 0.01; done`
    expect(await exec(berth, app, ['sh', '-c', wait])).toMatchObject({ exitCode: 0 })
  }

  beforeAll(async () => {
    const spec = { image: 'berth.local/debian:12', size: 'nano' }
    db = await createUnit(berth, { ...spec, name: 'db', entrypoint: perl(database) }, 'shop')
    app = await createUnit(berth, { ...spec, name: 'app', entrypoint: perl(application) }, 'shop')
    await eventually(async () => expect((await exec(berth, app, ['test', '-p', '/ask'])).exitCode).toBe(0))
  })

  it('is kept awake by packets of a sibling', async () => {
    await ask('early')
    const before = Date.parse((await unitOf(db)).sleepsAt ?? '')
    // Use is recorded four times a minute.
    await delay(16 * SECOND)
    await ask('late')
    await eventually(async () => {
      expect(Date.parse((await unitOf(db)).sleepsAt ?? '')).toBeGreaterThan(before + 15 * SECOND)
    })
  })

  it('that is frozen answers over a connection that a sibling has kept open', async () => {
    for (const time of ['first', 'second', 'third']) {
      const { startedAt } = await unitOf(db)
      await sleepNow(db)
      await ask(time)
      expect(await unitOf(db)).toMatchObject({ state: 'running', startedAt })
    }
  })

  it('that is hibernated accepts a new connection of a sibling', async () => {
    const { startedAt } = await unitOf(db)
    await sleepNow(db)
    await untilStopped(berth, [db])
    expect((await exec(berth, app, perl(connectAndAsk))).stdout).toBe('seen anew\n')
    const awake = await unitOf(db)
    expect(awake.state).toBe('running')
    expect(awake.startedAt).not.toBe(startedAt)
  })

  it('is woken by two hundred concurrent calls', async () => {
    await sleepNow(db)
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => berth.call('POST', `/v1/units/${db.id}/start`)),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await exec(berth, app, perl(connectAndAsk))).stdout).toBe('seen anew\n')
  })
})
