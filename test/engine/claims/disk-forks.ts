import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { MachineRef } from '../../../src/engine/engine.ts'
import { eventually, type Suite } from '../suite.ts'
import { createForking } from './forks.ts'
import { places, plant, survey } from './storage.ts'

/** Answers each line of a connection with how many lines it has had in all. */
const counter = [
  'use IO::Socket::INET;',
  'my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 5, ReuseAddr => 1) or die;',
  '$| = 1; print "listening\\n"; my $n = 0;',
  'while (my $c = $s->accept) { $c->autoflush(1); while (<$c>) { $n++; print $c "$n\\n" } close $c }',
].join(' ')

/** Asks the counter over one connection until it is told to end. */
const asking = (address: string) =>
  [
    'use IO::Socket::INET; $| = 1;',
    `my $c = IO::Socket::INET->new(PeerAddr => "${address}", PeerPort => 8080) or die; $c->autoflush(1);`,
    'my $n = 0; until (-e "/tmp/end") { print $c "next\\n"; my $l = <$c>; defined $l or die "cut"; $n++;',
    'chomp $l; $l == $n or die "$l is not $n"; select undef, undef, undef, 0.01 } print "$n\\n"',
  ].join(' ')

/** Of engines whose machines have disks and kernels. */
export function diskForkClaims(suite: Suite): void {
  const engine = suite.engine
  const { fork, running, specOf } = createForking(suite)
  const said = async (ref: MachineRef, script: string) => (await suite.sh(ref, script)).stdout
  const withVolume = { volume: { mount: '/data', gb: 1 } }
  const onPlaces = async (ref: MachineRef, script: string) => {
    const results = await Promise.all(places.map((place) => suite.exec(ref, ['sh', '-c', script, place])))
    for (const { exitCode, stderr } of results) expect(`${exitCode} ${stderr}`).toBe('0 ')
    return results.map(({ stdout }) => stdout)
  }

  suite.long(
    'a fork has every byte, name, mode, owner, link, attribute and time of the disk and volume',
    async () => {
      const source = await suite.running({}, withVolume)
      await onPlaces(source, plant)
      const before = await onPlaces(source, survey)
      const copy = await running(source)
      expect(await onPlaces(copy, survey)).toEqual(before)
      await onPlaces(source, 'rm -rf "$0"')
      expect(await onPlaces(copy, survey)).toEqual(before)
      const grandchild = await running(copy)
      expect(await onPlaces(grandchild, survey)).toEqual(before)
    },
  )

  test('files of the image that the source removed or changed are removed or changed in the fork', async () => {
    const source = await suite.running()
    await suite.sh(
      source,
      'rm /etc/debian_version; rm -r /usr/share/doc; mkdir /usr/share/doc; echo x >> /etc/passwd',
    )
    const copy = await running(source)
    const script = 'ls /etc/debian_version /usr/share/doc 2>/dev/null; tail -n 1 /etc/passwd'
    expect(await said(copy, script)).toBe('/usr/share/doc:\nx\n')
    await suite.sh(copy, 'echo y >> /etc/passwd; rm -r /usr/share/doc; mkdir /usr/share/doc')
    expect(await said(source, script)).toBe('/usr/share/doc:\nx\n')
  })

  test('the disk and volume of a fork are from the same instant', async () => {
    const script = 'i=0; while :; do i=$((i+1)); echo $i >> /root/log; echo $i >> /data/log; done'
    const source = await suite.running({ entrypoint: ['bash', '-c', script], cmd: [] }, withVolume)
    await eventually(async () => (await said(source, 'cat /data/log')) || null)
    for (let round = 0; round < 5; round += 1) {
      const copy = await running(source, { entrypoint: null, cmd: ['sleep', 'infinity'] })
      const counts = await said(copy, 'tail -n 1 /root/log; tail -n 1 /data/log; wc -l < /root/log')
      const [root = 0, data = 0, lines = 0] = counts.split('\n').map(Number)
      expect([root - data, root - lines, data > 0]).toEqual([expect.toBeOneOf([0, 1]), 0, true])
      await engine().destroy(copy.id)
    }
  })

  test('a source keeps its connections and commands during repeated forks', async () => {
    const source = await suite.running({ entrypoint: ['perl', '-e', counter], cmd: [] }, withVolume)
    const visitor = await suite.running()
    await suite.logged(source.id, 1)
    const address = (await suite.status(source.id))?.address ?? ''
    const conversation = suite.exec(visitor, ['perl', '-e', asking(address)], { timeoutMs: 60_000 })
    let going = true
    const commands = (async () => {
      while (going) expect(await suite.sh(source, 'echo on')).toMatchObject({ exitCode: 0, stdout: 'on\n' })
    })()
    for (let round = 0; round < 5; round += 1) await fork(source)
    await Promise.all(Array.from({ length: 10 }, async () => await fork(source)))
    going = false
    await commands
    await suite.sh(visitor, 'touch /tmp/end')
    const { exitCode, stdout, stderr } = await conversation
    expect(`${exitCode} ${stderr}`).toBe('0 ')
    expect(Number(stdout)).toBeGreaterThan(5)
  })

  test('a fork gets its own files in /etc, and those of its source are unchanged', async () => {
    const source = await suite.running({ hostname: 'first', searchDomain: 'one.internal' })
    const files = ['hostname', 'hosts', 'resolv.conf', 'machine-id'].map((name) => `/etc/${name}`)
    const before = await said(source, `cat ${files.join(' ')}`)
    const copy = await running(source, { hostname: 'second', searchDomain: 'two.internal' })
    const address = (await suite.status(copy.id))?.address
    expect(await said(copy, 'cat /etc/hostname')).toBe('second\n')
    expect(await said(copy, 'cat /etc/hosts')).toContain(`\n${address} second.two.internal second\n`)
    expect(await said(copy, 'cat /etc/resolv.conf')).toMatch(/\nsearch two\.internal\n$/)
    const machineId = 'cat /etc/machine-id; stat -c %a:%u /etc/machine-id'
    const [own, mode] = (await said(copy, machineId)).split('\n')
    expect([own, mode]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), '644:0'])
    expect(await said(source, `cat ${files.join(' ')}`)).toBe(before)
    expect(before).not.toContain(own)
    // They are its own from then on.
    await suite.sh(copy, 'echo mine > /etc/hosts')
    await engine().stop(copy, 0)
    const again = await suite.start({ ...copy, generation: 2 }, { hostname: 'second' })
    expect(await said(again, 'cat /etc/hosts /etc/machine-id')).toBe(`mine\n${own}\n`)
  })

  test('links that a source planted in /etc do not redirect the files written for its fork', async () => {
    const canary = await mkdtemp(join(tmpdir(), 'berth-canary-'))
    onTestFinished(async () => await rm(canary, { recursive: true }))
    const source = await suite.running()
    const plantLinks = [
      `cd /etc; ln -sf ${canary}/hostname hostname; ln -sf ../../../../..${canary}/hosts hosts; mkdir -p ${canary}`,
      'echo precious > /root/precious; ln -sf /root/precious resolv.conf; rm machine-id; mkfifo machine-id',
    ]
    await suite.sh(source, plantLinks.join('\n'))
    const copy = await running(source, { hostname: 'second' })
    expect(await said(copy, 'cat /etc/hostname /root/precious; ls -A $0')).toContain('second\nprecious\n')
    expect(await said(copy, 'cat /etc/machine-id')).toMatch(/^[0-9a-f]{32}\n$/)
    expect(await said(copy, 'cat /etc/resolv.conf')).toContain('nameserver')
    expect(await readdir(canary)).toEqual([])
  })

  test.each([
    ['a link that leads out', (canary: string) => `mv /etc /root/etc; ln -s ../../../../../..${canary} /etc`],
    ['a link to nothing', () => 'mv /etc /root/etc; ln -s /nowhere /etc'],
    ['a file', () => 'mv /etc /root/etc; echo x > /etc'],
    ['directories', () => 'cd /etc; rm -f hostname hosts machine-id; mkdir -p hostname/x hosts machine-id'],
  ])('a fork starts even if /etc of its source is %s', async (_what, script) => {
    const canary = await mkdtemp(join(tmpdir(), 'berth-canary-'))
    onTestFinished(async () => await rm(canary, { recursive: true }))
    const source = await suite.running()
    await suite.sh(source, script(canary))
    const copy = await running(source)
    expect(await said(copy, 'echo started')).toBe('started\n')
    expect(await readdir(canary)).toEqual([])
  })

  suite.long('a fork has its own disk limits, and those of its source are unchanged', async () => {
    const size = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
    const source = await suite.running({}, { size, ...withVolume })
    await suite.sh(source, 'for d in /root /data; do fallocate -l 300M $d/held; done')
    const copy = await running(source)
    for (const directory of ['/root', '/data']) {
      const fill = `cd ${directory}; fallocate -l 600M own; head -c 300M /dev/zero > full; sync full`
      expect((await suite.sh(copy, fill, { timeoutMs: 60_000 })).stderr).toMatch(/quota|No space/i)
      const fits = `fallocate -l 500M ${directory}/own && head -c 100M /dev/zero > ${directory}/more && sync ${directory}/more && echo fits`
      expect(await suite.sh(source, fits, { timeoutMs: 60_000 })).toMatchObject({ stdout: 'fits\n' })
    }
  })

  test('a fork in another network group has its own address from its first start', async () => {
    const source = await suite.running({}, { networkGroup: 21 })
    const [forked] = await engine().fork([{ ...specOf(source), networkGroup: 22 }])
    const copy = await suite.start({ id: forked?.status.id ?? '', generation: 1 })
    const address = (await suite.status(source.id))?.address
    const own = (await suite.status(copy.id))?.address
    expect(await eventually(async () => (await said(copy, 'hostname -I')).trim() || null)).toBe(own)
    expect(own).not.toBe(address)
  })
}
