import { expect, test } from 'vitest'
import { listenOnHost } from '../host-listener.ts'
import { eventually, type Suite } from '../suite.ts'

export function networkClaims(suite: Suite): void {
  /** Answers every connection with a word, from inside a machine. */
  const server = [
    'use IO::Socket::INET;',
    'my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 20, ReuseAddr => 1) or die;',
    '$| = 1; print "listening\\n";',
    'while (my $c = $s->accept) { print $c "hello\\n"; close $c; }',
  ].join(' ')
  const serving = { entrypoint: ['perl', '-e', server], cmd: [] }

  async function reaches(
    from: { id: string; generation: number },
    address: string,
    port: number,
  ): Promise<boolean> {
    const script = `timeout 3 bash -c 'head -1 < /dev/tcp/${address}/${port}'`
    return (await suite.sh(from, script)).stdout === 'hello\n'
  }
  async function addressOf(id: string): Promise<string> {
    return (await suite.status(id))?.address ?? ''
  }

  test('machines of one group reach each other, and machines of another group do not', async () => {
    const one = await suite.running(serving, { networkGroup: 11 })
    const sibling = await suite.running({}, { networkGroup: 11 })
    const stranger = await suite.running({}, { networkGroup: 12 })
    await suite.logged(one.id, 1)
    const address = await addressOf(one.id)
    await eventually(async () => ((await reaches(sibling, address, 8080)) ? true : null))
    expect(await reaches(stranger, address, 8080)).toBe(false)
  })

  test('a machine reaches itself by its address and by localhost', async () => {
    const ref = await suite.running(serving)
    await suite.logged(ref.id, 1)
    const address = await addressOf(ref.id)
    expect(await reaches(ref, address, 8080)).toBe(true)
    expect(await reaches(ref, '127.0.0.1', 8080)).toBe(true)
  })

  test('what listens for a machine alone is reached at a port that is opened for it', async () => {
    const alone = [
      'use Socket;',
      'sub answer { my $s = shift; listen($s, 20) or die; while (accept(my $c, $s)) { print $c "hello\\n"; close $c } }',
      'socket(my $four, AF_INET, SOCK_STREAM, 0) or die;',
      'bind($four, pack_sockaddr_in(8080, INADDR_LOOPBACK)) or die;',
      'socket(my $six, AF_INET6, SOCK_STREAM, 0) or die;',
      'bind($six, pack_sockaddr_in6(8081, Socket::inet_pton(AF_INET6, "::1"))) or die;',
      'if (fork) { answer($four) } else { answer($six) }',
    ].join(' ')
    const ref = await suite.running({ entrypoint: ['perl', '-e', alone], cmd: [] })
    const address = await addressOf(ref.id)
    await eventually(async () => ((await reaches(ref, '127.0.0.1', 8080)) ? true : null))
    expect(await reaches(ref, address, 8080)).toBe(false)
    for (const port of [8080, 8081]) {
      const opened = await suite.engine().openLoopback(ref, port)
      expect(await reaches(ref, address, opened ?? 0)).toBe(true)
      expect(await suite.engine().openLoopback(ref, port)).toBe(opened)
    }
    expect(await suite.engine().openLoopback(ref, 8082)).toBeNull()
  })

  test('a machine cannot reach the host or its networks', async () => {
    const ref = await suite.running()
    const host = await listenOnHost(suite.networkOf(ref))
    try {
      expect(host.addresses).not.toEqual([])
      for (const target of [...host.addresses, '169.254.169.254', '172.17.0.1']) {
        expect([target, await reaches(ref, target, host.port)]).toEqual([target, false])
      }
    } finally {
      await host.close()
    }
  })

  test('the resolver configuration has the given search domain', async () => {
    const ref = await suite.running({ searchDomain: 'shop.internal' })
    const { stdout } = await suite.sh(ref, 'cat /etc/resolv.conf')
    expect(stdout).toMatch(/^search shop\.internal$/m)
    expect(stdout).toMatch(/^nameserver 10\.\d+\.0\.1$/m)
    expect((await suite.sh(ref, 'getent hosts localhost')).stdout).toContain('localhost')
  })

  test('the address and network group survive a stop and start', async () => {
    const one = await suite.running(serving, { networkGroup: 13 })
    const sibling = await suite.running({}, { networkGroup: 13 })
    const address = await addressOf(one.id)
    await suite.engine().stop(one, 0)
    await suite.start({ id: one.id, generation: 2 }, serving)
    await eventually(async () => ((await reaches(sibling, address, 8080)) ? true : null))
  })
}
