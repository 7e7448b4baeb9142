import { expect, onTestFinished, test } from 'vitest'
import type { ForkSpec, MachineRef, RunSpec } from '../../../src/engine/engine.ts'
import { eventually, type Suite } from '../suite.ts'
import { places, plant, survey } from './storage.ts'

const pause = async (ms: number) => await new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Answers each line of a connection with how many lines it has had in all, which it has in memory alone, with what it
 * reads from the kernel's random numbers, and with how long it has run by a clock that never jumps.
 */
const server = [
  'use IO::Socket::INET; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);',
  'my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 9, ReuseAddr => 1) or die;',
  '$| = 1; print "listening\\n"; my $n = 0; my $began = clock_gettime(CLOCK_MONOTONIC);',
  '$SIG{ALRM} = sub { print "the alarm rang\\n" }; alarm($ENV{ALARM}) if $ENV{ALARM};',
  'my @c = ($s); $SIG{PIPE} = "IGNORE"; while (1) { my $r = ""; vec($r, fileno($_), 1) = 1 for @c; next if select($r, undef, undef, undef) < 0;',
  'for my $c (my @ready = grep { vec($r, fileno($_), 1) } @c) { if ($c == $s) { push @c, scalar $s->accept; next }',
  'if (!sysread($c, my $l, 100)) { @c = grep { $_ != $c } @c; close $c; next }',
  '$n++; open my $f, "<", "/dev/urandom"; read $f, my $x, 8; close $f;',
  'syswrite $c, join(" ", $n, unpack("H*", $x), clock_gettime(CLOCK_MONOTONIC) - $began) . "\\n" } }',
].join(' ')

/** One line to the server, and its answer. */
const ask = (host: string) =>
  `exec 3<>/dev/tcp/${host}/8080; echo next >&3; read -t 5 answer <&3; echo "$answer"`

const run: RunSpec = {
  hostname: 'unit',
  entrypoint: ['perl', '-e', server],
  cmd: [],
  env: {},
  files: [],
  searchDomain: 'stack.internal',
  egress: null,
}

type Answer = { count: number; random: string; seconds: number }

/** For engines that support memory checkpoints. */
export function memoryClaims(suite: Suite): void {
  const engine = suite.engine
  const inGvisor = suite.options.isolation === 'gvisor'
  const said = async (ref: MachineRef, script: string) =>
    (await suite.exec(ref, ['bash', '-c', script])).stdout

  const asked = async (ref: MachineRef, host = '127.0.0.1'): Promise<Answer> => {
    const [count, random = '', seconds] = (await said(ref, ask(host))).trim().split(' ')
    return { count: Number(count), random, seconds: Number(seconds) }
  }
  const serving = async (changed: Partial<RunSpec> = {}, spec = {}): Promise<MachineRef> => {
    const ref = await suite.running({ ...run, ...changed }, spec)
    await suite.logged(ref.id, 1)
    return ref
  }
  const next = async (ref: MachineRef, changed: Partial<RunSpec> = {}) => {
    const again = { id: ref.id, generation: ref.generation + 1 }
    const { resumed } = await engine().start(again, { ...run, ...changed })
    return { ref: again, resumed }
  }
  const forkSpec = (source: MachineRef, hostname = 'copy'): ForkSpec => {
    const { id } = suite.specOf({})
    onTestFinished(async () => await engine().destroy(id))
    return { id, source, networkGroup: 1, run: { ...run, hostname } }
  }

  test('a suspended run continues with its memory, log, commands and files and can be stopped', async () => {
    const ref = await serving()
    expect((await asked(ref)).count).toBe(1)
    expect(await engine().suspend(ref, 1000)).toBe(true)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'exited', frozen: false, generation: 1 })
    const again = await next(ref, { hostname: 'renamed' })
    expect(again.resumed).toBe(true)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running', frozen: false, exit: null })
    expect((await asked(again.ref)).count).toBe(2)
    expect(await said(again.ref, 'hostname; kill -ALRM 1')).toBe('renamed\n')
    const texts = (await suite.logged(ref.id, 2)).map(({ text }) => text)
    expect(texts).toEqual(['listening', 'the alarm rang'])
    const written = Buffer.from('written')
    expect((await engine().writeFile(again.ref, '/root/file', written)).verified).toBe(true)
    expect((await engine().readFile(again.ref, '/root/file', 100)).content).toEqual(written)
    await engine().stop(again.ref, 0)
    expect(await suite.exitOf(again.ref)).toMatchObject({ code: 137, oomKilled: false })
  })

  test('a frozen run can be suspended without a thaw', async () => {
    const ref = await serving()
    await asked(ref)
    await engine().freeze(ref)
    expect(await engine().suspend(ref, 1000)).toBe(true)
    const again = await next(ref)
    expect([again.resumed, (await asked(again.ref)).count]).toEqual([true, 2])
  })

  test('a repeated suspend returns the same result; a suspend of another or no run keeps nothing', async () => {
    const ref = await serving()
    expect(await engine().suspend({ ...ref, generation: 7 }, 0)).toBe(false)
    expect(await engine().suspend(ref, 0)).toBe(true)
    expect(await engine().suspend(ref, 0)).toBe(true)
    const again = await next(ref)
    expect(again.resumed).toBe(true)
    expect(await engine().start(again.ref, run)).toMatchObject({ resumed: true })
    await engine().stop(again.ref, 0)
    expect(await engine().suspend(again.ref, 0)).toBe(false)
    expect((await next(again.ref)).resumed).toBe(false)
  })

  test('a checkpoint is used for one start only', async () => {
    const ref = await serving()
    await engine().suspend(ref, 0)
    const resumed = await next(ref)
    const over = await next(resumed.ref)
    expect(over.resumed).toBe(false)
    await suite.logged(ref.id, 2)
    expect((await asked(over.ref)).count).toBe(1)
  })

  test('a run that does not use the saved memory says in its log why', async () => {
    const ref = await serving()
    expect(await engine().suspend(ref, 0)).toBe(true)
    const { resumed, ref: again } = await next(ref, { env: { CHANGED: 'yes' } })
    expect(resumed).toBe(false)
    const lines = await suite.logged(again.id, 3)
    expect(lines.map(({ text }) => text)).toEqual([
      'listening',
      'berth: The saved memory is not used: the command, the environment or the files were changed. The unit starts from its disk.',
      'listening',
    ])
  })

  test('a stop after a suspend discards the checkpoint', async () => {
    const ref = await serving()
    expect(await engine().suspend(ref, 0)).toBe(true)
    await engine().stop({ ...ref, generation: 7 }, 0)
    await engine().stop(ref, 0)
    expect((await next(ref)).resumed).toBe(false)
  })

  test.each([
    ['another command', { cmd: ['more'] }],
    ['another environment', { env: { WHAT: 'else' } }],
    ['another boot file', { files: [{ path: '/srv/boot', content: Buffer.from('x') }] }],
  ])('a run with %s starts cold', async (_what, changed) => {
    const ref = await serving()
    await said(ref, 'echo kept > /root/kept')
    expect(await engine().suspend(ref, 0)).toBe(true)
    const again = await next(ref, changed)
    expect([again.resumed, await said(again.ref, 'cat /root/kept')]).toEqual([false, 'kept\n'])
  })

  suite.long('six suspensions keep every byte of the disk and volume and the memory', async () => {
    const files = [{ path: '/srv/boot', content: Buffer.from('boot') }]
    let ref = await serving({ files }, { volume: { mount: '/data', gb: 1 } })
    const surveys = async () => await Promise.all(places.map(async (place) => await in_(place, survey)))
    const in_ = async (place: string, script: string) => {
      const { exitCode, stdout, stderr } = await suite.exec(ref, ['sh', '-c', script, place])
      expect(`${exitCode} ${stderr}`).toBe('0 ')
      return stdout
    }
    for (const place of places) await in_(place, plant)
    const before = await surveys()
    for (let cycle = 1; cycle <= 6; cycle += 1) {
      expect((await asked(ref)).count).toBe(cycle)
      await said(ref, 'echo x >> /data/log')
      expect(await engine().suspend(ref, 0)).toBe(true)
      const again = await next(ref, { files })
      expect([cycle, again.resumed]).toEqual([cycle, true])
      ref = again.ref
      expect(await surveys()).toEqual(before)
    }
    expect(await said(ref, 'wc -l < /data/log; cat /srv/boot')).toBe('6\nboot')
  })

  test.runIf(inGvisor)('connections go on after each of two suspensions', async () => {
    const ref = await serving()
    const sibling = await serving()
    const address = (await suite.status(ref.id))?.address ?? ''
    const talk = [
      `exec 3<>/dev/tcp/${address}/8080; echo a >&3; read -t 5 x <&3; touch /root/up`,
      'until [ -e /root/go ]; do sleep 0.05; done; echo b >&3; read -t 10 x <&3; echo "$x"',
    ]
    const talking = suite.exec(sibling, ['bash', '-c', talk.join('; ')], { timeoutMs: 60_000 })
    await eventually(async () => ((await suite.sh(sibling, 'test -e /root/up')).exitCode === 0 ? true : null))
    expect(await engine().suspend(ref, 0)).toBe(true)
    const again = await next(ref)
    expect([again.resumed, await engine().suspend(again.ref, 0)]).toEqual([true, true])
    expect((await next(again.ref)).resumed).toBe(true)
    await suite.sh(sibling, 'touch /root/go')
    expect((await talking).stdout).toMatch(/^2 /)
  })

  test.skipIf(inGvisor)(
    'connections are closed by a suspension, and new ones work in both directions',
    async () => {
      const ref = await serving()
      const sibling = await serving()
      const addressOf = async ({ id }: MachineRef) => (await suite.status(id))?.address ?? ''
      const hanging = `exec 3<>/dev/tcp/${await addressOf(ref)}/8080; echo a >&3; read -t 5 x <&3; touch /root/up; cat <&3`
      void suite.exec(sibling, ['bash', '-c', hanging], { timeoutMs: 60_000 }).catch(() => undefined)
      await eventually(async () =>
        (await suite.sh(sibling, 'test -e /root/up')).exitCode === 0 ? true : null,
      )
      expect(await engine().suspend(ref, 0)).toBe(true)
      const again = await next(ref)
      expect(again.resumed).toBe(true)
      expect((await asked(sibling, await addressOf(ref))).count).toBe(2)
      expect((await asked(again.ref, await addressOf(sibling))).count).toBe(1)
    },
  )

  // A gVisor that is frozen does not take any, and so has none.
  test.skipIf(inGvisor)('connections in the backlog of a listener do not prevent a suspension', async () => {
    const ref = await serving()
    const sibling = await serving()
    const address = (await suite.status(ref.id))?.address ?? ''
    await asked(ref)
    await engine().freeze(ref)
    const waiting = `exec 3<>/dev/tcp/${address}/8080; touch /root/up; read -t 30 x <&3`
    void suite.exec(sibling, ['bash', '-c', waiting], { timeoutMs: 60_000 }).catch(() => undefined)
    await eventually(async () => ((await suite.sh(sibling, 'test -e /root/up')).exitCode === 0 ? true : null))
    expect(await engine().suspend(ref, 0)).toBe(true)
    const again = await next(ref)
    expect(again.resumed).toBe(true)
    expect((await asked(again.ref)).count).toBe(2)
  })

  test('a listener suspended under load responds to its neighbours afterwards', async () => {
    const ref = await serving()
    const sibling = await serving()
    const address = (await suite.status(ref.id))?.address ?? ''
    const visit = `(${ask(address)}) > /dev/null 2>&1`
    const crowd = `for i in 1 2 3 4; do while [ ! -e /root/end ]; do ${visit}; done & done; wait`
    const visitors = suite.exec(sibling, ['bash', '-c', crowd], { timeoutMs: 60_000 })
    void suite.exec(ref, ['sleep', '60'], { timeoutMs: 60_000 }).catch(() => undefined)
    await eventually(async () => ((await asked(ref)).count > 20 ? true : null))
    const before = (await asked(ref)).count
    const kept = await engine().suspend(ref, 0)
    const again = await next(ref)
    expect(again.resumed).toBe(kept)
    const { count } = await asked(sibling, address)
    if (kept) expect(count).toBeGreaterThan(before)
    await suite.sh(sibling, 'touch /root/end')
    expect((await visitors).exitCode).toBe(0)
  })

  test('monotonic clocks never go back, timers continue, and the wall clock is the host’s', async () => {
    const ref = await serving({ env: { ALARM: '3' } })
    const before = (await asked(ref)).seconds
    expect(await engine().suspend(ref, 0)).toBe(true)
    await pause(1500)
    const again = await next(ref, { env: { ALARM: '3' } })
    expect(again.resumed).toBe(true)
    expect((await asked(again.ref)).seconds).toBeGreaterThan(before)
    const skew = Math.abs(Number(await said(again.ref, 'date +%s')) - Date.now() / 1000)
    expect(skew).toBeLessThan(5)
    const log = await suite.logged(ref.id, 2)
    expect(log.at(-1)?.text).toBe('the alarm rang')
  })

  test('all restrictions of a machine still apply after a restore', async () => {
    const ref = await serving()
    const script = [
      'grep -E "^(NoNewPrivs|Seccomp|Cap|Uid|Gid)" /proc/1/status; cat /proc/1/oom_score_adj /proc/1/limits',
      // Where /dev/null lies over a file, flags of that mount are nothing.
      'cut -d" " -f4,5,6 /proc/1/mountinfo | sed -r "s/,relatime//; s#^/null (\\S+) .*#null \\1#; s#^\\S+ ##" | sort',
      'cat /proc/sys/net/ipv4/ip_unprivileged_port_start',
      'cat /proc/sys/net/ipv4/ping_group_range; find /sys/fs/cgroup -maxdepth 2 -name "*limit_in_bytes" | sort | xargs cat',
      'find /sys/fs/cgroup -maxdepth 2 -name "cpu.cfs_quota_us" -o -name pids.max -o -name cpu.max | sort | xargs cat',
      'cat /sys/fs/cgroup/devices/devices.list; cat /proc/1/cgroup; readlink /proc/1/ns/time; mount -t tmpfs none /mnt 2>&1; unshare -m true 2>&1',
    ]
    const before = await said(ref, script.join('\n'))
    expect(await engine().suspend(ref, 0)).toBe(true)
    const again = await next(ref)
    expect(again.resumed).toBe(true)
    expect((await said(again.ref, script.join('\n'))).split('\n')).toEqual(before.split('\n'))
  })

  test('a fork continues from its source’s memory, and the source keeps its open connections', async () => {
    const source = await serving({ hostname: 'first' })
    const visitor = await serving()
    const address = (await suite.status(source.id))?.address ?? ''
    const talk = [
      `exec 3<>/dev/tcp/${address}/8080; until [ -e /root/end ]`,
      'do echo next >&3; read -t 5 n <&3 || exit 1; last=$n; sleep 0.02; done; echo "$last"',
    ]
    const conversation = suite.exec(visitor, ['bash', '-c', talk.join('; ')], { timeoutMs: 60_000 })
    await eventually(async () => ((await asked(source)).count > 5 ? true : null))
    const spec = forkSpec(source)
    const earlier = await asked(source)
    expect(await engine().fork([spec])).toMatchObject([{ copied: 'memory' }])
    const copy = { id: spec.id, generation: 1 }
    expect(await engine().start(copy, { ...run, hostname: 'copy' })).toMatchObject({ resumed: true })
    const [of, later] = [await asked(copy), await asked(copy)]
    expect(of.count).toBeGreaterThan(earlier.count)
    // Nobody else talks to it: the connection of the source's visitor is not its own.
    expect(later.count).toBe(of.count + 1)
    expect(await said(copy, 'hostname; cat /run/berth/fork-generation /etc/hostname')).toBe('copy\n1\ncopy\n')
    const inside = await said(copy, 'cat /proc/net/tcp | grep -c " 01 "')
    expect(Number(inside)).toBe(0)
    await suite.sh(visitor, 'touch /root/end')
    const { exitCode, stdout } = await conversation
    expect(exitCode).toBe(0)
    expect(Number(stdout.split(' ')[0])).toBeGreaterThan(later.count)
    expect(await said(source, 'hostname')).toBe('first\n')
  })

  test('a fork knows who it is, also where its source has read that before', async () => {
    const source = await serving()
    const facts = [
      'hostname; cat /run/berth/fork-generation /etc/hostname /etc/machine-id /proc/sys/kernel/random/uuid',
      'date +%s; cat /etc/hosts',
    ]
    const factsOf = async (ref: MachineRef) => (await said(ref, facts.join('\n'))).split('\n')
    const before = await factsOf(source)
    const spec = forkSpec(source, 'a-much-longer-name')
    expect(await engine().fork([spec])).toMatchObject([{ copied: 'memory' }])
    const copy = { id: spec.id, generation: 1 }
    expect(await engine().start(copy, { ...run, hostname: 'a-much-longer-name' })).toMatchObject({
      resumed: true,
    })
    const [hostname, generation, nameInFile, machineId, uuid, seconds, ...hosts] = await factsOf(copy)
    expect([hostname, generation, nameInFile]).toEqual(['a-much-longer-name', '1', 'a-much-longer-name'])
    expect(machineId).toMatch(/^[0-9a-f]{32}$/)
    expect([before[3], before[4]]).not.toContain(machineId)
    expect(uuid).not.toBe(before[4])
    expect(Math.abs(Number(seconds) - Date.now() / 1000)).toBeLessThan(5)
    expect(hosts.join()).toContain((await suite.status(copy.id))?.address)
    const [after, since] = [await factsOf(source), (facts: string[]) => facts.toSpliced(4, 2)]
    expect(since(after)).toEqual(since(before))
  })

  test('what runs in a fork finds its own name and hosts as soon as it goes on', async () => {
    const address = (await suite.status((await serving()).id))?.address ?? ''
    // It is told by the end of the connection, which only a copy loses.
    const waiting = [
      `use IO::Socket::INET; $| = 1; my $c = IO::Socket::INET->new(PeerAddr => "${address}:8080") or die;`,
      'print "connected\\n"; sysread $c, my $l, 1;',
      'for (qw(hostname hosts)) { open my $f, "<", "/etc/$_"; local $/; print split /\\n/, <$f>, -1; print "\\n" }',
      'sleep 1000',
    ]
    const entrypoint = ['perl', '-e', waiting.join(' ')]
    const source = await serving({ hostname: 'first', entrypoint })
    const spec = { ...forkSpec(source), run: { ...run, entrypoint, hostname: 'copy' } }
    expect(await engine().fork([spec])).toMatchObject([{ copied: 'memory' }])
    expect((await engine().start({ id: spec.id, generation: 1 }, spec.run)).resumed).toBe(true)
    const [name, hosts] = (await suite.logged(spec.id, 2)).map(({ text }) => text)
    expect([name, hosts]).toEqual(['copy', expect.stringContaining('copy.stack.internal copy')])
  })

  test('two forks from the same instant get different random numbers and are independent', async () => {
    const source = await serving()
    await asked(source)
    const specs = [forkSpec(source, 'one'), forkSpec(source, 'two')]
    expect(await engine().fork(specs)).toMatchObject([{ copied: 'memory' }, { copied: 'memory' }])
    const answers: Answer[] = []
    for (const { id, run: given } of specs) {
      expect(await engine().start({ id, generation: 1 }, given ?? run)).toMatchObject({ resumed: true })
      answers.push(await asked({ id, generation: 1 }))
    }
    answers.push(await asked(source))
    expect(answers.map(({ count }) => count)).toEqual([2, 2, 2])
    expect(new Set(answers.map(({ random }) => random)).size).toBe(3)
  })

  test('a fork of a fork continues from memory and can be suspended', async () => {
    const source = await serving()
    const child = forkSpec(source)
    await engine().fork([child])
    const first = { id: child.id, generation: 1 }
    await engine().start(first, run)
    await asked(first)
    const grandchild = forkSpec(first)
    expect(await engine().fork([grandchild])).toMatchObject([{ copied: 'memory' }])
    const second = { id: grandchild.id, generation: 1 }
    expect(await engine().start(second, run)).toMatchObject({ resumed: true })
    expect((await asked(second)).count).toBe(2)
    expect(await engine().suspend(second, 0)).toBe(true)
    const again = await next(second)
    expect([again.resumed, (await asked(again.ref)).count]).toEqual([true, 3])
    expect(await said(again.ref, 'cat /run/berth/fork-generation')).toBe('2\n')
  })

  test.skipIf(inGvisor)('processes left by commands survive repeated suspensions', async () => {
    let ref = await serving()
    for (const name of ['first', 'second', 'third']) {
      const left = `setsid bash -c 'while :; do echo ${name} >> /root/log; sleep 0.1; done' > /dev/null 2>&1 < /dev/null &`
      await said(ref, left)
      expect([name, await engine().suspend(ref, 0)]).toEqual([name, true])
      const again = await next(ref)
      expect(again.resumed).toBe(true)
      ref = again.ref
      await said(ref, ': > /root/log')
      await eventually(async () => ((await said(ref, `grep -c ${name} /root/log`)) === '0\n' ? null : true))
    }
  })

  test.runIf(inGvisor)(
    'processes left by commands end with a suspended run, also with one that was frozen',
    async () => {
      let ref = await serving()
      for (const isFrozen of [false, true]) {
        const left = `setsid bash -c 'while :; do echo left >> /root/log; sleep 0.1; done' > /dev/null 2>&1 < /dev/null &`
        await said(ref, left)
        await eventually(async () =>
          (await suite.sh(ref, 'test -s /root/log')).exitCode === 0 ? true : null,
        )
        if (isFrozen) await engine().freeze(ref)
        expect([isFrozen, await engine().suspend(ref, 0)]).toEqual([isFrozen, true])
        const again = await next(ref)
        expect([isFrozen, again.resumed]).toEqual([isFrozen, true])
        ref = again.ref
        expect(await said(ref, 'cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "echo lef[t]"')).toBe('0\n')
        await said(ref, ': > /root/log')
      }
    },
  )
}
