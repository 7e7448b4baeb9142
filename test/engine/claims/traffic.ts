import { expect, onTestFinished, test } from 'vitest'
import type { MachineRef } from '../../../src/engine/engine.ts'
import { eventually, type Suite } from '../suite.ts'

const pause = async (ms: number) => await new Promise((resolve) => setTimeout(resolve, ms))

/** Several times as long as packets may take to be told. */
const SETTLE_MS = 1000

/** Says every line of every connection back, and logs how it begins. */
const echo = [
  'use IO::Socket::INET; $| = 1; $SIG{CHLD} = "IGNORE";',
  'my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 20, ReuseAddr => 1) or die;',
  'print "listening\\n";',
  'while (1) { my $c = $s->accept or next; next if fork; $c->autoflush(1);',
  'while (<$c>) { print $c $_; chomp; print substr($_, 0, 20), "\\n" } exit }',
].join(' ')

/** Opens a connection to the echo, kept alive once a second, logs that, and runs `then` with it in `$c`. */
const connecting = (address: string, then: string) =>
  [
    'use IO::Socket::INET; use Socket; $| = 1; $SIG{CHLD} = "IGNORE";',
    `my $c = IO::Socket::INET->new(PeerAddr => "${address}", PeerPort => 8080) or die; $c->autoflush(1);`,
    'setsockopt($c, SOL_SOCKET, SO_KEEPALIVE, 1); setsockopt($c, 6, $_, 1) for 4, 5;',
    'print $c "hello\\n"; my $said = <$c>; print "connected\\n";',
    then,
  ].join(' ')

const perl = (script: string) => ({ entrypoint: ['perl', '-e', script], cmd: [] })
const WAIT = 'sleep 1 while 1;'

export function trafficClaims(suite: Suite): void {
  const { engine } = suite
  const addressOf = async (ref: MachineRef) => (await suite.status(ref.id))?.address ?? ''
  const bash = async (ref: MachineRef, script: string) =>
    await suite.exec(ref, ['timeout', '15', 'bash', '-c', script])
  const ask = (address: string) => `exec 3<>/dev/tcp/${address}/8080; echo line >&3; head -1 <&3`

  /** Who is told from now on; of what was sent before, everybody has been told already. */
  async function listen() {
    const told = new Set<string>()
    const abort = new AbortController()
    const watching = engine().watchTraffic((ids) => {
      for (const id of ids) told.add(id)
    }, abort.signal)
    onTestFinished(async () => {
      abort.abort()
      await watching
    })
    const heard = {
      has: ({ id }: MachineRef) => told.has(id),
      soon: async (ref: MachineRef) => await eventually(async () => heard.has(ref) || null),
      forget: async () => {
        await pause(SETTLE_MS)
        told.clear()
      },
    }
    await heard.forget()
    return heard
  }

  async function serving(networkGroup: number): Promise<{ server: MachineRef; address: string }> {
    const server = await suite.running(perl(echo), { networkGroup })
    await suite.logged(server.id, 1)
    return { server, address: await addressOf(server) }
  }

  /** An echo, and another of its group with a connection to it. */
  async function connected(networkGroup: number, then = WAIT) {
    const { server, address } = await serving(networkGroup)
    const client = await suite.running(perl(connecting(address, then)), { networkGroup })
    await suite.logged(client.id, 1)
    return { server, client, address }
  }

  test('packets and their responses report the receiving machines and no others', async () => {
    const { server, client, address } = await connected(21)
    const sibling = await suite.running({}, { networkGroup: 21 })
    const heard = await listen()
    // Nobody listens there: the answer is of ICMP.
    for (const script of [ask(address), `echo x > /dev/udp/${address}/9`]) {
      await bash(client, script)
      await heard.soon(server)
      await heard.soon(client)
      await heard.forget()
    }
    await bash(client, ask(address))
    await pause(SETTLE_MS)
    expect([heard.has(server), heard.has(client), heard.has(sibling)]).toEqual([true, true, false])
  })

  test('packets between groups or to the machine itself are not reported', async () => {
    const { server, address } = await serving(22)
    const stranger = await suite.running({}, { networkGroup: 23 })
    const heard = await listen()
    await bash(stranger, `echo x > /dev/udp/${address}/9; timeout 2 bash -c '${ask(address)}'`)
    expect((await bash(server, ask(address))).stdout).toBe('line\n')
    await pause(SETTLE_MS)
    expect([heard.has(server), heard.has(stranger)]).toEqual([false, false])
  })

  test('an idle connection is not reported, even with keep-alives', async () => {
    const { server, client } = await connected(24)
    const heard = await listen()
    await pause(3000)
    expect([heard.has(server), heard.has(client)]).toEqual([false, false])
  })

  test('a frozen machine is reported, and after the thaw it gets every byte sent meanwhile', async () => {
    const saying = [
      'select(undef, undef, undef, 0.05) until -e "/tmp/go";',
      'my @lines = map { "$_ " . "x" x 100 . "\\n" } 1 .. 1000; my $all = join "", @lines;',
      'if (!fork) { print $c $all; exit } my $back = ""; $back .= <$c> for @lines;',
      `print $back eq $all ? "same\\n" : "other\\n"; ${WAIT}`,
    ].join(' ')
    const { server, client } = await connected(25, saying)
    await engine().freeze(server)
    const heard = await listen()
    await suite.sh(client, 'touch /tmp/go')
    await heard.soon(server)
    await pause(SETTLE_MS)
    await engine().thaw(server)
    expect((await suite.logged(client.id, 2)).at(-1)?.text).toBe('same')
  })

  test('connection retries by the kernel of a frozen machine are not reported', async () => {
    const { server, address } = await serving(26)
    await engine().stop(server, 0)
    const heard = await listen()
    const client = await suite.running(perl(connecting(address, WAIT)), { networkGroup: 26 })
    await heard.soon(server)
    await engine().freeze(client)
    await heard.forget()
    // Its second and third try are due within this.
    await pause(3000)
    expect(heard.has(server)).toBe(false)
    await engine().thaw(client)
    await heard.soon(server)
  })

  test('packets that a frozen machine sends while it is stopped are not reported', async () => {
    const polite = `$SIG{TERM} = sub { print $c "goodbye\\n"; exit 0 }; ${WAIT}`
    const { server, client } = await connected(27, polite)
    await engine().freeze(server)
    await engine().freeze(client)
    const heard = await listen()
    await engine().stop(client, 10_000)
    await pause(SETTLE_MS)
    expect(heard.has(server)).toBe(false)
    await engine().thaw(server)
    const lines = (await suite.logged(server.id, 3)).map(({ text }) => text)
    expect(lines).toEqual(['listening', 'hello', 'goodbye'])
  })

  test('a stopped machine is reported and accepts the connection once it is started', async () => {
    const { server, address } = await serving(28)
    const client = await suite.running({}, { networkGroup: 28 })
    await engine().stop(server, 0)
    const heard = await listen()
    const answer = bash(client, ask(address))
    await heard.soon(server)
    await suite.start({ id: server.id, generation: 2 }, perl(echo))
    expect(await answer).toMatchObject({ exitCode: 0, stdout: 'line\n' })
  })

  test('a new watcher is told of packets sent a moment before', async () => {
    const { server, client } = await connected(29)
    await pause(SETTLE_MS)
    const told: string[] = []
    const abort = new AbortController()
    const watching = engine().watchTraffic((ids) => void told.push(...ids), abort.signal)
    await eventually(async () => told.includes(server.id) || null)
    expect(told).toContain(client.id)
    abort.abort()
    await watching
  })
}
