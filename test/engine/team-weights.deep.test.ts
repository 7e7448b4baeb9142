// Teams compete for the CPU as equals, and a team that has used much of it lately gets less (decisions/processor.md). The
// test reads the kernel's counters and files, because speed on a busy machine proves nothing.

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { IsolationClass, MachineRef } from '../../src/engine/engine.ts'
import { groupDirectory, listTeams } from '../../src/engine/oci/kernel/cgroups.ts'
import { cpuTimeOfTeam } from '../../src/engine/oci/kernel/team-groups.ts'
import type { Monitor } from '../../src/engine/oci/runtime/monitor.ts'
import { IMAGE, openHostEngine } from './host-engine.ts'
import { createSuite } from './suite.ts'

const WAIT = { timeout: 60_000, interval: 200 }
const FULL = 1024
const PRINTS = { entrypoint: ['yes', 'a line that is printed as fast as it can be printed'], cmd: [] }
const BUSY = { entrypoint: ['sh', '-c', 'while :; do :; done'], cmd: [] }
const SMALL = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
/** More than enough for one team to take the CPU from another. */
const CROWD = 4

describe.each<IsolationClass>(['runc', 'gvisor'])('with %s machines', (isolation) => {
  let host: Awaited<ReturnType<typeof openHostEngine>>
  const suite = createSuite(
    async () => {
      host = await openHostEngine({ isolation })
      return {
        engine: host.engine(),
        configuredImage: '',
        reopen: async () => await host.reopen(),
        close: async () => await host.close(),
      }
    },
    { isolation, image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
  )
  beforeAll(async () => await suite.open())
  afterAll(async () => await suite.close())

  const weightOf = (group: string) => {
    const { version, trees, main } = host.cgroups
    if (version === 1) return Number(readFileSync(`${trees['cpu']}/${group}/cpu.shares`, 'utf8'))
    return (Number(readFileSync(`${main}/${group}/cpu.weight`, 'utf8')) * FULL) / 100
  }
  const weightOfTeam = (team: number) => weightOf(`${host.cgroups.parent}/team-${team}`)
  const usedBy = (team: number) => cpuTimeOfTeam(host.cgroups, `team-${team}`) ?? 0
  const monitorOf = ({ id, generation }: MachineRef) => {
    const monitor = JSON.parse(readFileSync(host.paths.run(id, generation).running, 'utf8')) as Monitor
    return readFileSync(`/proc/${monitor.pid}/cgroup`, 'utf8')
  }

  it('a busy team gets a lower CPU weight than an idle one, and all teams less than the service', async () => {
    const quiet = await suite.running({}, { networkGroup: 3, size: SMALL })
    await suite.running(BUSY, { networkGroup: 4, size: SMALL })
    await suite.running(BUSY, { networkGroup: 4, size: SMALL })
    await expect.poll(() => weightOfTeam(4), WAIT).toBeLessThan(FULL / 2)
    // Its own start-up no longer counts by then.
    await expect.poll(() => weightOfTeam(3), WAIT).toBe(FULL)
    expect(weightOf(host.cgroups.parent)).toBe(FULL / 2)
    // Work for a team outside its machines counts for the team as well.
    expect(monitorOf(quiet)).toMatch(new RegExp(`/${host.cgroups.parent}/team-3/work$`, 'm'))
    const before = usedBy(3)
    expect((await suite.sh(quiet, 'echo fine')).stdout).toBe('fine\n')
    expect(usedBy(3)).toBeGreaterThan(before)
  })

  it('many units of one team take no more CPU from another team than one unit would', async () => {
    const crowd = await Promise.all(
      Array.from({ length: CROWD }, () => suite.running(BUSY, { networkGroup: 5, size: SMALL })),
    )
    await suite.running(BUSY, { networkGroup: 6, size: SMALL })
    const [crowdBefore, oneBefore] = [usedBy(5), usedBy(6)]
    // By now both weights have dropped to about the same.
    await expect.poll(() => usedBy(5) + usedBy(6) - crowdBefore - oneBefore, WAIT).toBeGreaterThan(3e6)
    const [byCrowd, byOne] = [usedBy(5) - crowdBefore, usedBy(6) - oneBefore]
    // The single unit can use one CPU at most; the crowd gets what is left of the others.
    const fair = byCrowd / Math.max(1, availableParallelism() - 1)
    expect(byOne).toBeGreaterThan(fair / 2)
    await Promise.all(crowd.map(({ id }) => host.engine().destroy(id)))
  })

  it('log writers of a team share a CPU quota once a machine prints megabytes', async () => {
    const quiet = await suite.running({}, { networkGroup: 8, size: SMALL })
    const printing = await suite.running(PRINTS, { networkGroup: 8, size: SMALL })
    const inGroup = (group: string) => new RegExp(`/${host.cgroups.parent}/team-8/${group}$`, 'm')
    await expect.poll(() => monitorOf(printing), WAIT).toMatch(inGroup('logs'))
    expect(monitorOf(printing)).not.toMatch(inGroup('work'))
    expect(monitorOf(quiet)).toMatch(inGroup('work'))
    const { version, trees, main, parent } = host.cgroups
    const read = (file: string) =>
      readFileSync(`${version === 1 ? trees['cpu'] : main}/${parent}/team-8/logs/${file}`, 'utf8').trim()
    if (version === 2) expect(read('cpu.max')).toBe('5000 20000')
    else expect([read('cpu.cfs_quota_us'), read('cpu.cfs_period_us')]).toEqual(['5000', '20000'])
    // The kernel throttles the log writer, and the machine continues.
    const throttled = () => Number(/^nr_throttled (\d+)$/m.exec(read('cpu.stat'))?.[1])
    await expect.poll(throttled, WAIT).toBeGreaterThan(0)
    expect(await suite.status(printing.id)).toMatchObject({ state: 'running' })
    await Promise.all([quiet, printing].map(({ id }) => host.engine().destroy(id)))
  })

  const cpuFileOf = ({ id, generation }: MachineRef, file: { v1: string; v2: string }) => {
    const { version, trees, main } = host.cgroups
    const tree = version === 1 ? (trees['cpu'] ?? '') : main
    const directory = groupDirectory(host.cgroups, tree, host.paths.run(id, generation).container)
    return readFileSync(`${directory}/${version === 1 ? file.v1 : file.v2}`, 'utf8')
  }
  const quarter = { networkGroup: 9, size: { ...SMALL, cpus: 0.25 } }

  it('what a machine did not use of its CPU is there for its next command, as much again as its quota', async () => {
    const ref = await suite.running({}, quarter)
    expect(Number(cpuFileOf(ref, { v1: 'cpu.cfs_burst_us', v2: 'cpu.max.burst' }))).toBe(25_000)
    const bursts = () =>
      Number(/^nr_bursts (\d+)$/m.exec(cpuFileOf(ref, { v1: 'cpu.stat', v2: 'cpu.stat' }))?.[1])
    const usesMore = async () => {
      await suite.sh(ref, 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done')
      return bursts()
    }
    await expect.poll(usesMore, WAIT).toBeGreaterThan(0)
    await host.engine().destroy(ref.id)
  })

  it('a small machine has a whole CPU while it starts and, if it is probed, until a probe passes', async () => {
    const engine = () => host.engine()
    const quotaOf = (ref: MachineRef) =>
      Number(cpuFileOf(ref, { v1: 'cpu.cfs_quota_us', v2: 'cpu.max' }).split(' ')[0])
    const plain = await suite.running({}, quarter)
    const probed = await suite.running({ probed: true }, quarter)
    const adopted = await suite.running({ probed: true }, quarter)
    const probe = async (cmd: string) => {
      const request = { argv: [cmd], stdin: null, timeoutMs: 20_000, probe: true }
      await engine().exec(probed, request, () => {})
    }
    expect([plain, probed].map(quotaOf)).toEqual([25_000, 100_000])
    await probe('false')
    expect((await suite.sh(probed, 'exit 0')).exitCode).toBe(0)
    expect(quotaOf(probed)).toBe(100_000)
    await probe('true')
    expect(quotaOf(probed)).toBe(25_000)
    // An engine that comes back does not know how long a start has gone on.
    expect(quotaOf(adopted)).toBe(100_000)
    await suite.reopen()
    expect(quotaOf(adopted)).toBe(25_000)
    await Promise.all([plain, probed, adopted].map(({ id }) => engine().destroy(id)))
  })

  it('a restarted engine adopts the team cgroups, and an unused one is removed', async () => {
    const ref = await suite.running({}, { networkGroup: 7, size: SMALL })
    await suite.reopen()
    await host.engine().freeze(ref)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running', frozen: true })
    await host.engine().thaw(ref)
    expect((await suite.sh(ref, 'echo fine')).stdout).toBe('fine\n')
    await host.expectAsListed()
    await host.engine().destroy(ref.id)
    await expect.poll(() => listTeams(host.cgroups), WAIT).toEqual([])
  })
})
