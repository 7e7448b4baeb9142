// Machines that exhaust resources other than those limited by their size (reliability I15, I19, I20). Meanwhile machines of
// another team must respond, and nothing may be left afterwards.

import { expect, test } from 'vitest'
import type { Suite } from '../suite.ts'

const SIZE = { cpus: 1, memoryMb: 256, pids: 128, diskGb: 1 }
const BOMB_MS = 20_000

/** Each runs until it is refused, or for a while. */
const bombs = {
  'threads that compute': 'for i in $(seq 32); do (while :; do :; done) & done; sleep 5',
  'open files': `perl -e 'while (open my $f, "<", "/dev/null") { push @held, $f } sleep 3'`,
  'watched directories': `perl -e 'for (1..20000) { mkdir "/root/w$_" or last } sleep 1'`,
  'directories within directories': `cd /root; perl -e 'for (1..4000) { mkdir "d" or last; chdir "d" or last }'`,
  'shared memory': 'head -c 1G /dev/zero > /dev/shm/full; sleep 2',
  'memory, taken and given back': `perl -e 'for (1..200) { my $x = "x" x (150 * 1024 * 1024) }'`,
  sockets: `perl -MSocket -e 'while (socketpair my $a, my $b, AF_UNIX, SOCK_STREAM, 0) { push @h, $a, $b } sleep 2'`,
  'writes that are flushed': `perl -MIO::Handle -e 'open my $f, ">", "/root/f"; for (1..3000) { print $f "x" x 4096; $f->flush; $f->sync }'`,
  'a file that says to be a terabyte':
    'truncate -s 1T /root/sparse; head -c 100M /dev/zero >> /root/sparse; sleep 1',
}

export function bombClaims(suite: Suite): void {
  const other = { networkGroup: 2, size: SIZE }

  test.each(Object.entries(bombs))(
    'a machine that uses up %s does not block a machine of another team',
    async (_name, script) => {
      const neighbour = await suite.running({}, other)
      const ref = await suite.running({}, { size: SIZE })
      let isOver = false
      const bomb = suite
        .exec(ref, ['bash', '-c', script], { timeoutMs: BOMB_MS })
        .catch((error: unknown) => error)
        .finally(() => (isOver = true))
      let answered = 0
      do {
        expect(await suite.sh(neighbour, 'echo fine > /root/file; cat /root/file')).toMatchObject({
          exitCode: 0,
          stdout: 'fine\n',
        })
        answered += 1
      } while (!isOver)
      await bomb
      expect(answered).toBeGreaterThan(0)
      // The machine is running, or its end is reported.
      const status = await suite.status(ref.id)
      if (status?.state !== 'running') expect((await suite.exitOf(ref)).code).toBeGreaterThan(0)
      await suite.engine().destroy(ref.id)
      expect(await suite.status(ref.id)).toBeUndefined()
      expect(await suite.status(neighbour.id)).toMatchObject({ state: 'running' })
    },
  )

  test('empty files count against the disk limit too', async () => {
    const neighbour = await suite.running({}, other)
    const ref = await suite.running({}, { size: SIZE })
    const fill =
      'cd /root; mkdir many; fallocate -l 900M held; for i in $(seq 400); do fallocate -l 1M "f$i" || break; done; head -c 2M /dev/zero > last; sync'
    await suite.sh(ref, fill, { timeoutMs: 60_000 })
    const many = `perl -e 'for (1..200000) { open my $f, ">", "/root/many/$_" or do { print "$_ $!"; last } }'`
    const { stdout } = await suite.sh(ref, many, { timeoutMs: 60_000 })
    expect(stdout).toMatch(/^(?:\d+ )?.*(?:quota|No space)/i)
    expect(await suite.sh(neighbour, 'for i in $(seq 100); do : > /root/$i; done; echo fine')).toMatchObject({
      stdout: 'fine\n',
      stderr: '',
    })
    expect(await suite.sh(ref, 'rm /root/held; echo going on')).toMatchObject({ stdout: 'going on\n' })
  })

  test('a machine that prints endlessly does not affect the log of another machine', async () => {
    const count = 'n=0; while :; do n=$((n+1)); echo $n; sleep 0.05; done'
    const neighbour = await suite.running({ entrypoint: ['bash', '-c', count], cmd: [] }, other)
    const ref = await suite.running({ entrypoint: ['yes', 'a line'], cmd: [] }, { size: SIZE })
    const lines = await suite.logged(neighbour.id, 100)
    expect(lines.slice(0, 100).map(({ text }) => text)).toEqual(
      Array.from({ length: 100 }, (_, n) => `${n + 1}`),
    )
    expect((await suite.logged(ref.id, 500)).at(-1)?.text).toBe('a line')
  })
}
