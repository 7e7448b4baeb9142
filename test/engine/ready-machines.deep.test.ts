// Machines made ahead (decisions/creates.md): a create that finds one gets what a cold start would have made, and nothing
// of it shows that it waited; one that finds none, or cannot use it, starts as ever.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { isolationClasses, type MachineRef, type MachineSpec } from '../../src/engine/engine.ts'
import type { MachineRecord } from '../../src/engine/oci/records/record.ts'
import { listCgroups, processesIn } from '../../src/engine/oci/kernel/cgroups.ts'
import { listChildren } from '../../src/engine/oci/kernel/cgroup-children.ts'
import { hit, miss, readySuite } from './ready-suite.ts'

/** Everything that a process can ask the kernel about its machine, but for times and for what is random. */
const FACTS = `
head -c 400 /proc/1/cmdline | tr '\\0' '\\n'
tr '\\0' '\\n' </proc/1/environ | sort
echo "exe $(readlink /proc/1/exe) cwd $(readlink /proc/1/cwd) root $(readlink /proc/1/root)"
grep -Ev 'Vm|Rss|ctxt|Hugetlb|SigQ|Cpus|Mems|x86|untag|HugetlbPages|Speculation' /proc/1/status
cat /proc/1/limits
for fd in 0 1 2 3 4 5 10; do echo "fd $fd $(readlink /proc/1/fd/$fd | tr -d 0-9) $(stat -Lc '%F %a %u' /proc/1/fd/$fd 2>/dev/null)"; done
grep flags /proc/1/fdinfo/0 2>/dev/null
cut -d ' ' -f 1-8 /proc/1/stat
sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s/fd.[0-9]+/fd/g; s/(master|shared|propagate_from):[0-9]+//g; s,/runs/[^/]+/,/runs/RUN/,' /proc/self/mountinfo
id; pwd; umask; hostname; cat /proc/sys/kernel/hostname
cat /etc/hostname; sed 's/[0-9.]* unit/ADDRESS unit/' /etc/hosts; cat /etc/resolv.conf
wc -c </etc/machine-id
ls -la --time-style=+ /etc/hostname /etc/hosts /etc/machine-id /run/berth
ls -A / /run /tmp /dev/shm
ls /proc/1/ns
cat /proc/1/oom_score_adj /proc/1/cgroup
ip -o addr show dev eth0 2>/dev/null | wc -l
`

describe.each(isolationClasses)('a machine of class %s that was made ahead', (isolation) => {
  const { suite, host, stats, whenReady, start } = readySuite(isolation)

  it('is made after the first create of its kind, and has what a cold start gives it', async () => {
    const run = { env: { A: '1', 'B.C': "it's\n$(x) two", PATH: '/usr/bin:/bin' }, hostname: 'unit' }
    const cold = await start(run)
    expect(cold.outcome).toBe(miss)
    await whenReady()
    const warm = await start(run)
    expect(warm.outcome).toBe(hit)
    const facts = async (ref: MachineRef) => {
      const { stdout } = await suite.sh(ref, FACTS)
      // In gVisor a cold start's stdin is the host's /dev/null, this one's the sandbox's own.
      return isolation === 'runc' ? stdout : stdout.replaceAll(/^(fd 0|flags:).*$/gm, '')
    }
    expect(await facts(warm.ref)).toBe(await facts(cold.ref))
    expect((await suite.sh(warm.ref, 'cat </proc/1/fd/0; ls /run /')).stdout).not.toContain('orders')
  })

  it.runIf(isolation === 'runc')('has a process that stands ready for its first command', async () => {
    await whenReady()
    const { ref, outcome } = await start()
    expect(outcome).toBe(hit)
    const record = readFileSync(join(host().paths.machine(ref.id).dir, 'machine.json'), 'utf8')
    const container = (JSON.parse(record) as MachineRecord).madeAs ?? ''
    // One of them makes others of its kind.
    const stand = listChildren(host().cgroups, container)
      .flatMap((command) => processesIn(host().cgroups, container, command))
      .map((pid) => /^NSpid:.*\s(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
    expect(stand).toContain((await suite.sh(ref, 'echo $$')).stdout.trim())
  })

  it('has the user and the directory of its image, and what its command prints and how it ends is known', async () => {
    const spec = { imageDigest: suite.configuredImage() }
    const script = 'echo out; echo err >&2; id -u; pwd; cat /boot/file; exit 7'
    const run = {
      entrypoint: ['sh', '-c', script],
      cmd: [],
      files: [{ path: '/boot/file', content: Buffer.from('written\n') }],
    }
    const outcomes = []
    for (const _time of [1, 2]) {
      const { ref, outcome } = await start(run, spec)
      outcomes.push(outcome)
      expect(await suite.exitOf(ref)).toMatchObject({ code: 7, oomKilled: false, byHost: false })
      const lines = await suite.logged(ref.id, 5)
      expect(lines.map(({ text }) => text).toSorted()).toEqual(['/srv', '1', 'err', 'out', 'written'])
      await whenReady()
    }
    expect(outcomes).toEqual([miss, hit])
  })

  it('fails as a cold start does where its command is none, and then has nothing of the attempt', async () => {
    await whenReady()
    const notAProgram = { path: '/opt/none', content: Buffer.from('none') }
    for (const run of [
      { entrypoint: ['/no/such/program'] },
      { entrypoint: ['no-such-program'] },
      { entrypoint: ['/opt/none'], files: [notAProgram] },
      { entrypoint: ['/etc'] },
    ]) {
      const spec = await suite.create()
      const ref = { id: spec.id, generation: 1 }
      const warm = await suite.start(ref, { ...run, cmd: [] }).catch((error: Error) => error.message)
      const other = await suite.create({ size: { ...spec.size, pids: 129 } })
      const cold = await suite
        .start({ id: other.id, generation: 1 }, { ...run, cmd: [] })
        .catch((error: Error) => error.message)
      expect(warm).toBe(cold)
      expect(await suite.start({ id: spec.id, generation: 2 })).toBeDefined()
      expect((await suite.sh({ id: spec.id, generation: 2 }, 'hostname')).stdout).toBe('unit\n')
      await suite.engine().destroy(spec.id)
      await suite.engine().destroy(other.id)
    }
  })

  it('runs a boot file, finds its command in PATH, and starts again from what it wrote', async () => {
    await whenReady()
    const tool = {
      path: '/usr/local/bin/own',
      content: Buffer.from('#!/bin/sh\necho "$0 $1" >/kept; sleep 99'),
    }
    const { ref, outcome } = await start({ entrypoint: ['own', 'a'], cmd: [], files: [tool] })
    expect(outcome).toBe(hit)
    const kept = async () => (await suite.sh(ref, 'cat /kept')).stdout
    await vi.waitFor(async () => expect(await kept()).toBe('/usr/local/bin/own a\n'), { timeout: 20_000 })
    await suite.engine().stop(ref, 0)
    const again = await suite.start({ ...ref, generation: 2 }, { hostname: 'second' })
    expect((await suite.sh(again, 'cat /kept; hostname; cat /etc/hostname')).stdout).toBe(
      '/usr/local/bin/own a\nsecond\nunit\n',
    )
  })

  it('is for its own team, its own image and its own size, and for one create', async () => {
    await whenReady()
    const { size } = suite.specOf({})
    const others: Partial<MachineSpec>[] = [
      { networkGroup: 2 },
      { size: { ...size, memoryMb: 300 } },
      { volume: { mount: '/other', gb: 1 } },
    ]
    for (const spec of others) {
      const before = await stats()
      await suite.running({}, spec)
      expect((await stats()).hits).toBe(before.hits)
    }
    const both = await Promise.all([suite.running(), suite.running()])
    const addresses = await Promise.all(both.map(async ({ id }) => (await suite.status(id))?.address))
    expect(new Set(addresses).size).toBe(2)
  })

  it('that was taken and never started is destroyed with its machine', async () => {
    await whenReady()
    const spec = await suite.create()
    await suite.engine().destroy(spec.id)
    await vi.waitFor(async () => expect(listCgroups(host().cgroups)).toHaveLength((await stats()).waiting), {
      timeout: 10_000,
      interval: 20,
    })
  })

  it('is gone when the engine closes, and a machine that began as one is adopted', async () => {
    await whenReady()
    const { ref, outcome } = await start({ cmd: ['sh', '-c', 'while sleep 1; do echo on; done'] })
    expect(outcome).toBe(hit)
    await suite.reopen()
    expect(listCgroups(host().cgroups)).toHaveLength(1)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running' })
    expect((await suite.sh(ref, 'hostname')).stdout).toBe('unit\n')
    const lines = (await suite.logged(ref.id, 1)).length
    await suite.logged(ref.id, lines + 2)
    await suite.engine().freeze(ref)
    await suite.engine().thaw(ref)
    await suite.engine().stop(ref, 0)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'exited' })
  })
})
