import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  cgroupPath,
  killAll,
  limitSocketBuffers,
  listCgroups,
  listTeams,
  openCgroups,
  placeInTeam,
  processesIn,
  removeParent,
  removeTeam,
  setCpuQuota,
} from './cgroups.ts'
import { countOomKills, hasMetMemoryLimit, memoryInUse } from './cgroup-memory.ts'
import { limitLogWriter, prepareTeam } from './team-groups.ts'

// File trees recorded from real hosts. Version 1 is the hybrid form of the build machine.
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth-cgroups-'))
})
afterEach(() => rmSync(root, { recursive: true }))

function record(files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

describe('cgroup version 2', () => {
  beforeEach(() =>
    record({
      'cgroup.controllers': 'cpuset cpu io memory pids\n',
      'berth-ab12/unit_1-3/cgroup.procs': '101\n102\n',
      'berth-ab12/unit_1-3/exec-1/cgroup.procs': '103\n',
      'berth-ab12/unit_1-3/cgroup.kill': '',
      'berth-ab12/unit_1-3/exec-1/cgroup.kill': '',
      'berth-ab12/unit_1-3/memory.stat': 'anon 1000\nfile 70000\nkernel 900\nshmem 200\nfile_mapped 3\n',
      'berth-ab12/unit_1-3/memory.events': 'low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n',
    }),
  )

  it('uses one tree with a top-level group for the instance', () => {
    const cgroups = openCgroups('ab12', root)
    expect(cgroups.version).toBe(2)
    expect(cgroupPath(cgroups, 'unit_1-3')).toBe('/berth-ab12/unit_1-3')
    expect(listCgroups(cgroups)).toEqual(['unit_1-3'])
  })

  it('counts the processes of execs among those of their machine', () => {
    const cgroups = openCgroups('ab12', root)
    expect(processesIn(cgroups, 'unit_1-3')).toEqual([101, 102, 103])
    expect(processesIn(cgroups, 'unit_1-3', 'exec-1')).toEqual([103])
  })

  it('kills a machine or one of its execs by cgroup.kill and returns false while processes survive', async () => {
    const cgroups = openCgroups('ab12', root)
    expect(await killAll(cgroups, 'unit_1-3', 'exec-1')).toBe(false)
    expect(readFileSync(join(root, 'berth-ab12/unit_1-3/exec-1/cgroup.kill'), 'utf8')).toBe('1')
    expect(readFileSync(join(root, 'berth-ab12/unit_1-3/cgroup.kill'), 'utf8')).toBe('')
  })

  it('counts anonymous and kernel memory, not the page cache', () => {
    expect(memoryInUse(openCgroups('ab12', root), 'unit_1-3')).toBe(1200)
  })

  it('counts OOM kills', () => {
    expect(countOomKills(openCgroups('ab12', root), 'unit_1-3')).toBe(1)
  })

  it('distinguishes a kill at the machine’s own limit from a kill because the host ran out of memory', () => {
    const cgroups = openCgroups('ab12', root)
    expect(hasMetMemoryLimit(cgroups, 'unit_1-3')).toBe(true)
    record({ 'berth-ab12/unit_1-3/memory.events': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n' })
    expect(hasMetMemoryLimit(cgroups, 'unit_1-3')).toBe(false)
    expect(countOomKills(cgroups, 'unit_1-3')).toBe(1)
  })

  it('sets the CPU quota and as much again to save, and keeps the period', () => {
    setCpuQuota(openCgroups('ab12', root), 'unit_1-3', 25_000)
    expect(readFileSync(join(root, 'berth-ab12/unit_1-3/cpu.max'), 'utf8')).toBe('25000')
    expect(readFileSync(join(root, 'berth-ab12/unit_1-3/cpu.max.burst'), 'utf8')).toBe('25000')
  })
})

it('cgroup version 2 accounts socket buffers as memory, so it sets no separate limit', () => {
  record({ 'cgroup.controllers': 'memory\n' })
  const cgroups = openCgroups('ab12', root)
  limitSocketBuffers(cgroups, 'unit_2-1', 1_000_000)
  expect(listCgroups(cgroups)).toEqual([])
})

describe('a team’s cgroup', () => {
  beforeEach(() =>
    record({
      'cgroup.controllers': 'cpuset cpu io memory pids\n',
      'berth-ab12/cgroup.procs': '',
      'berth-ab12/team-7/work/cgroup.procs': '90\n',
      'berth-ab12/team-7/unit_1-3/cgroup.procs': '101\n',
      'berth-ab12/team-7/unit_1-3/exec-1/cgroup.procs': '102\n',
      'berth-ab12/unit_2-1/cgroup.procs': '201\n',
    }),
  )

  it('contains the runs of the team, and runs from an earlier version are still found outside it', () => {
    const cgroups = openCgroups('ab12', root)
    expect(listCgroups(cgroups).sort()).toEqual(['unit_1-3', 'unit_2-1'])
    expect(processesIn(cgroups, 'unit_1-3')).toEqual([101, 102])
    expect(processesIn(cgroups, 'unit_2-1')).toEqual([201])
    expect(cgroupPath(cgroups, 'unit_1-3')).toBe('/berth-ab12/team-7/unit_1-3')
    expect(cgroupPath(cgroups, 'unit_2-1')).toBe('/berth-ab12/unit_2-1')
  })

  it('is created with delegated controllers before a run is placed in it', () => {
    const cgroups = openCgroups('ab12', root)
    prepareTeam(cgroups, 8)
    placeInTeam(cgroups, 'unit_3-1', 8)
    expect(cgroupPath(cgroups, 'unit_3-1')).toBe('/berth-ab12/team-8/unit_3-1')
    expect(listTeams(cgroups).sort()).toEqual(['team-7', 'team-8'])
    // Each handed out by the parent, which the kernel asks for first.
    for (const group of ['', 'berth-ab12/', 'berth-ab12/team-8/'])
      expect(readFileSync(join(root, `${group}cgroup.subtree_control`), 'utf8')).toBe('+pids')
  })

  it('has a CPU-limited group for log writers that is not listed as a run', async () => {
    const cgroups = openCgroups('ab12', root)
    record({ 'berth-ab12/team-7/logs/cpu.max': 'max 100000\n' })
    await limitLogWriter(cgroups, 7, 90)
    expect(readFileSync(join(root, 'berth-ab12/team-7/logs/cpu.max'), 'utf8')).toBe('5000 20000\n')
    expect(readFileSync(join(root, 'berth-ab12/team-7/logs/cgroup.procs'), 'utf8')).toBe('90')
    expect(listCgroups(cgroups).sort()).toEqual(['unit_1-3', 'unit_2-1'])
  })

  it('is removed once it contains no run', () => {
    const cgroups = openCgroups('ab12', root)
    prepareTeam(cgroups, 8)
    for (const file of ['cgroup.subtree_control', 'cpu.weight'])
      rmSync(join(root, 'berth-ab12/team-8', file), { force: true })
    mkdirSync(join(root, 'berth-ab12/team-8/logs'))
    removeTeam(cgroups, 'team-7')
    removeTeam(cgroups, 'team-8')
    expect(listTeams(cgroups)).toEqual(['team-7'])
  })

  it('is not waited for while it contains a run', async () => {
    const cgroups = openCgroups('ab12', root)
    const removed = removeParent(cgroups).then(() => 'at once')
    expect(await Promise.race([removed, setImmediate('later')])).toBe('at once')
    expect(listTeams(cgroups)).toEqual(['team-7'])
  })
})

describe('cgroup version 1', () => {
  beforeEach(() =>
    record({
      'freezer/cgroup.procs': '',
      'memory/cgroup.procs': '',
      'unified/cgroup.procs': '',
      'cpu/cgroup.procs': '',
      'cpu/berth-ab12/unit_1-3/cgroup.procs': '201\n',
      'freezer/berth-ab12/unit_1-3/cgroup.procs': '201\n',
      'memory/berth-ab12/unit_1-3/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 4\n',
      'pids/berth-ab12/unit_9-1/cgroup.procs': '',
      'pids/cgroup.procs': '',
    }),
  )

  it('uses one tree per controller and finds a run that is in any of them', () => {
    const cgroups = openCgroups('ab12', root)
    expect(cgroups.version).toBe(1)
    expect(Object.keys(cgroups.trees).sort()).toEqual(['cpu', 'freezer', 'memory', 'pids', 'unified'])
    expect(listCgroups(cgroups).sort()).toEqual(['unit_1-3', 'unit_9-1'])
    expect(processesIn(cgroups, 'unit_1-3')).toEqual([201])
    expect(countOomKills(cgroups, 'unit_1-3')).toBe(4)
  })

  it('sets the CPU quota and as much again to save, and keeps the period', () => {
    setCpuQuota(openCgroups('ab12', root), 'unit_1-3', 25_000)
    expect(readFileSync(join(root, 'cpu/berth-ab12/unit_1-3/cpu.cfs_quota_us'), 'utf8')).toBe('25000')
    expect(readFileSync(join(root, 'cpu/berth-ab12/unit_1-3/cpu.cfs_burst_us'), 'utf8')).toBe('25000')
  })

  it('distinguishes a kill at the machine’s own limit from a kill because the host ran out of memory', () => {
    const cgroups = openCgroups('ab12', root)
    record({
      'memory/berth-ab12/unit_1-3/memory.limit_in_bytes': '268435456\n',
      'memory/berth-ab12/unit_1-3/memory.max_usage_in_bytes': '99000000\n',
    })
    expect(hasMetMemoryLimit(cgroups, 'unit_1-3')).toBe(false)
    record({ 'memory/berth-ab12/unit_1-3/memory.max_usage_in_bytes': '268431360\n' })
    expect(hasMetMemoryLimit(cgroups, 'unit_1-3')).toBe(true)
  })

  it('limits socket buffers in the group that the runtime will use', () => {
    limitSocketBuffers(openCgroups('ab12', root), 'unit_2-1', 1_000_000)
    const file = 'memory/berth-ab12/unit_2-1/memory.kmem.tcp.limit_in_bytes'
    expect(readFileSync(join(root, file), 'utf8')).toBe('1000000')
  })

  it('treats a missing group as empty and without OOM kills', async () => {
    const cgroups = openCgroups('ab12', root)
    expect(await killAll(cgroups, 'unit_7-1')).toBe(true)
    expect(countOomKills(cgroups, 'unit_7-1')).toBe(0)
  })
})
