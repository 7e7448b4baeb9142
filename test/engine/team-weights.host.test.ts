// Teams compete for the processors as one each, and who has used them much lately gives way (decision 0107). Told by the
// kernel's own counters and files: how fast anything is on a busy machine proves nothing.

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { IsolationClass, MachineRef } from '../../src/engine/engine.ts'
import { listTeams } from '../../src/engine/oci/kernel/cgroups.ts'
import { cpuTimeOfTeam } from '../../src/engine/oci/kernel/team-groups.ts'
import { IMAGE, openHostEngine } from './host-engine.ts'
import { createSuite } from './suite.ts'

const WAIT = { timeout: 60_000, interval: 200 }
const FULL = 1024
const PRINTS = { entrypoint: ['yes', 'a line that is printed as fast as it can be printed'], cmd: [] }
const BUSY = { entrypoint: ['sh', '-c', 'while :; do :; done'], cmd: [] }
const SMALL = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
/** Far more than a team needs to take all the processors from another. */
const CROWD = 4

describe.each<IsolationClass>(['runc', 'gvisor'])('in the class %s', (isolation) => {
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
  const monitorOf = ({ id }: MachineRef) => {
    const record = JSON.parse(readFileSync(host.paths.machine(id).record, 'utf8')) as {
      monitor: { pid: number }
    }
    return readFileSync(`/proc/${record.monitor.pid}/cgroup`, 'utf8')
  }

  it('a team that is busy falls below one that is not, and all teams yield to the service', async () => {
    const quiet = await suite.running({}, { networkGroup: 3, size: SMALL })
    await suite.running(BUSY, { networkGroup: 4, size: SMALL })
    await suite.running(BUSY, { networkGroup: 4, size: SMALL })
    await expect.poll(() => weightOfTeam(4), WAIT).toBeLessThan(FULL / 2)
    // Its own start is forgotten by then.
    await expect.poll(() => weightOfTeam(3), WAIT).toBe(FULL)
    expect(weightOf(host.cgroups.parent)).toBe(FULL / 2)
    // What is done for a team outside its machines is the team's as well.
    expect(monitorOf(quiet)).toMatch(new RegExp(`/${host.cgroups.parent}/team-3/work$`, 'm'))
    const before = usedBy(3)
    expect((await suite.sh(quiet, 'echo fine')).stdout).toBe('fine\n')
    expect(usedBy(3)).toBeGreaterThan(before)
  })

  it('a team’s many units take no more from another’s one than one of its own would', async () => {
    const crowd = await Promise.all(
      Array.from({ length: CROWD }, () => suite.running(BUSY, { networkGroup: 5, size: SMALL })),
    )
    await suite.running(BUSY, { networkGroup: 6, size: SMALL })
    const [crowdBefore, oneBefore] = [usedBy(5), usedBy(6)]
    // Both have fallen to about the same by then.
    await expect.poll(() => usedBy(5) + usedBy(6) - crowdBefore - oneBefore, WAIT).toBeGreaterThan(3e6)
    const [byCrowd, byOne] = [usedBy(5) - crowdBefore, usedBy(6) - oneBefore]
    // One unit has one processor at the most, and the crowd has what is left of the others.
    const fair = byCrowd / Math.max(1, availableParallelism() - 1)
    expect(byOne).toBeGreaterThan(fair / 2)
    await Promise.all(crowd.map(({ id }) => host.engine().destroy(id)))
  })

  it('what writes the logs of a team has a quota together once a machine prints megabytes', async () => {
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
    // It is held back by the kernel, and goes on.
    const throttled = () => Number(/^nr_throttled (\d+)$/m.exec(read('cpu.stat'))?.[1])
    await expect.poll(throttled, WAIT).toBeGreaterThan(0)
    expect(await suite.status(printing.id)).toMatchObject({ state: 'running' })
    await Promise.all([quiet, printing].map(({ id }) => host.engine().destroy(id)))
  })

  it('an engine that comes anew finds the groups, and one of a team that has gone does not stay', async () => {
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
