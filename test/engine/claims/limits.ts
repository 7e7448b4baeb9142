// A machine that uses all it can get harms only itself (reliability I15, I18).

import { expect, test } from 'vitest'
import { kindOf, type Suite } from '../suite.ts'

export function limitClaims(suite: Suite): void {
  const size = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
  const oneProcess = suite.options.isolation === 'gvisor'
  /** Takes memory until something stops it. */
  const eatMemory = 'my @held; while (1) { push @held, "x" x (16 * 1024 * 1024); }'

  test('a first process that exceeds its memory is killed and reported as OOM killed', async () => {
    const ref = await suite.running({ entrypoint: ['perl', '-e', eatMemory], cmd: [] }, { size })
    const exit = await suite.exitOf(ref, 60_000)
    expect(exit).toMatchObject({ code: 137, oomKilled: true, byHost: false })
  })

  test('a command that exceeds the memory fails without affecting other machines', async () => {
    const neighbour = await suite.running()
    const ref = await suite.running({}, { size })
    const result = await suite.exec(ref, ['perl', '-e', eatMemory], { timeoutMs: 60_000 })
    expect(result.exitCode).toBe(137)
    // gVisor is one process to the host: its whole machine goes, and it is said why.
    if (oneProcess) expect(await suite.exitOf(ref)).toMatchObject({ code: 137, oomKilled: true })
    else expect(await suite.status(ref.id)).toMatchObject({ state: 'running' })
    expect(await suite.sh(neighbour, 'echo fine')).toMatchObject({ stdout: 'fine\n' })
  })

  test('/dev/shm takes half of the memory, within the limit of all of it', async () => {
    const ref = await suite.running({}, { size })
    const fill =
      'df -k --output=size /dev/shm | tail -1; dd if=/dev/zero of=/dev/shm/full bs=4M; wc -c < /dev/shm/full'
    const { stdout, stderr } = await suite.exec(ref, ['sh', '-c', fill], { timeoutMs: 60_000 })
    const half = 128 * 1024 * 1024
    expect(stdout.split(/\s+/).filter(Boolean)).toEqual([String(half / 1024), String(half)])
    expect(stderr).toContain('No space left')
    const { run } = await suite.engine().metrics(ref.id)
    expect(run?.memory.usedBytes).toBeGreaterThanOrEqual(half)
  })

  // gVisor's are its own memory.
  test.skipIf(oneProcess)(
    'unread data in a machine’s sockets is limited to less than its memory',
    async () => {
      const ref = await suite.running({}, { size })
      const fill = `use IO::Socket::INET;
      my $server = IO::Socket::INET->new(Listen => 500, LocalAddr => '127.0.0.1') or die;
      my ($sent, $block, @held) = (0, 'x' x 65536);
      for (1 .. 400) {
        my $client = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $server->sockport) or last;
        push @held, $client, scalar $server->accept;
        $client->blocking(0);
        while (my $taken = syswrite $client, $block) { $sent += $taken }
      }
      print $sent >> 20, ' ', scalar @held;`
      const { stdout } = await suite.exec(ref, ['perl', '-e', fill])
      const [sentMb = Infinity, sockets] = stdout.split(' ').map(Number)
      // Without a limit these take six times of that.
      expect(sentMb).toBeLessThan(size.memoryMb)
      expect(sockets).toBe(800)
      expect(await suite.status(ref.id)).toMatchObject({ state: 'running' })
    },
  )

  test('a fork bomb does not affect other machines', async () => {
    const neighbour = await suite.running()
    const ref = await suite.running({}, { size: { ...size, memoryMb: 2048 } })
    const bomb = 'for (1..2000) { my $p = fork; exit 9 if !defined $p; if (!$p) { sleep 300; exit } }'
    const { exitCode } = await suite.exec(ref, ['perl', '-e', bomb], { timeoutMs: 60_000 })
    // What gVisor itself ends with when it can have no more threads.
    if (oneProcess) expect(await suite.exitOf(ref)).toMatchObject({ code: 2, oomKilled: false })
    else expect(await suite.status(ref.id)).toMatchObject({ state: 'running' })
    expect(exitCode).toBe(oneProcess ? 137 : 9)
    expect(await suite.sh(neighbour, 'echo fine')).toMatchObject({ stdout: 'fine\n' })
    await suite.engine().destroy(ref.id)
    expect(await suite.status(ref.id)).toBeUndefined()
  })

  test('a stopped machine is not reported as OOM killed even if a child was', async () => {
    const stubborn = 'trap "" TERM; echo up; while :; do sleep 0.1; done'
    const ref = await suite.running({ entrypoint: ['bash', '-c', stubborn], cmd: [] }, { size })
    await suite.logged(ref.id, 1)
    if (!oneProcess) expect((await suite.exec(ref, ['perl', '-e', eatMemory])).exitCode).toBe(137)
    await suite.engine().stop(ref, 300)
    expect(await suite.exitOf(ref)).toMatchObject({ code: 137, oomKilled: false })
  })

  test('a full disk is an error in the machine, which continues to run', async () => {
    const neighbour = await suite.running()
    const ref = await suite.running({}, { size, volume: { mount: '/data', gb: 1 } })
    for (const directory of ['/root', '/data']) {
      const fill = `cd ${directory}; fallocate -l 900M held; head -c 300M /dev/zero > full; sync; echo ended`
      const result = await suite.sh(ref, fill, { timeoutMs: 60_000 })
      expect(result.stderr).toMatch(/quota|No space/i)
      if (!suite.options.small)
        expect(
          await kindOf(suite.engine().writeFile(ref, `${directory}/put`, Buffer.alloc(900_000, 'x'))),
        ).toBe('disk_full')
      expect(await suite.sh(ref, `rm -f ${directory}/held ${directory}/full; echo going on`)).toMatchObject({
        stdout: 'going on\n',
      })
    }
    expect(await suite.sh(neighbour, 'echo fine > /root/file; cat /root/file')).toMatchObject({
      stdout: 'fine\n',
    })
  })

  test('a machine gets no more CPU than its size allows', async () => {
    const ref = await suite.running({}, { size: { ...size, cpus: 0.25 } })
    const [started, before] = [performance.now(), suite.cpuNs(ref)]
    await suite.sh(ref, 'while :; do :; done', { timeoutMs: 2000 })
    const used = (suite.cpuNs(ref) - before) / 1e6 / (performance.now() - started)
    // A quarter of a processor; a period that was under way comes on top.
    expect(used).toBeLessThan(0.4)
  })
}
