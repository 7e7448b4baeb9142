import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openCgroups } from './cgroups.ts'
import { readGroupUsage } from './group-usage.ts'

// As recorded from hosts of both kinds.
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth-usage-'))
})
afterEach(() => rmSync(root, { recursive: true }))

function record(files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

const device = { major: 7, minor: 3 }

it('reads the one tree of version 2', () => {
  const group = 'berth-ab12/unit_1-3'
  record({
    'cgroup.controllers': 'cpu io memory pids\n',
    [`${group}/cpu.stat`]: 'usage_usec 1234567\nuser_usec 1\nnr_throttled 4\nthrottled_usec 89000\n',
    [`${group}/memory.current`]: '50000000\n',
    [`${group}/memory.peak`]: '70000000\n',
    [`${group}/memory.max`]: '536870912\n',
    [`${group}/memory.stat`]: 'anon 30000000\nfile 20000000\ninactive_file 12000000\n',
    [`${group}/pids.current`]: '7\n',
    [`${group}/pids.max`]: '1024\n',
    [`${group}/io.stat`]: '254:0 rbytes=9 wbytes=9\n7:3 rbytes=4096 wbytes=8192 rios=1 wios=2\n',
  })
  expect(readGroupUsage(openCgroups('ab12', root), 'unit_1-3', device)).toEqual({
    cpu: { usedMs: 1235, limitedMs: 89 },
    memory: { usedBytes: 38_000_000, cacheBytes: 12_000_000, peakBytes: 70_000_000, limitBytes: 536_870_912 },
    pids: { count: 7, limit: 1024 },
    io: { readBytes: 4096, writtenBytes: 8192 },
  })
})

it('reads the trees of version 1, and leaves out what there is no tree for', () => {
  const group = 'berth-ab12/unit_1-3'
  record({
    'freezer/cgroup.procs': '',
    [`freezer/${group}/cgroup.procs`]: '101\n',
    'cpu/cgroup.procs': '',
    [`cpu/${group}/cpu.stat`]: 'nr_periods 9\nnr_throttled 2\nthrottled_time 89000000\n',
    'cpuacct/cgroup.procs': '',
    [`cpuacct/${group}/cpuacct.usage`]: '1234567890\n',
    'memory/cgroup.procs': '',
    [`memory/${group}/memory.usage_in_bytes`]: '50000000\n',
    [`memory/${group}/memory.max_usage_in_bytes`]: '70000000\n',
    [`memory/${group}/memory.limit_in_bytes`]: '536870912\n',
    [`memory/${group}/memory.stat`]: 'inactive_file 1\ntotal_inactive_file 12000000\n',
    'pids/cgroup.procs': '',
    [`pids/${group}/pids.current`]: '7\n',
    [`pids/${group}/pids.max`]: '1024\n',
  })
  const usage = {
    cpu: { usedMs: 1235, limitedMs: 89 },
    memory: { usedBytes: 38_000_000, cacheBytes: 12_000_000, peakBytes: 70_000_000, limitBytes: 536_870_912 },
    pids: { count: 7, limit: 1024 },
    io: null,
  }
  expect(readGroupUsage(openCgroups('ab12', root), 'unit_1-3', device)).toEqual(usage)
  record({
    'blkio/cgroup.procs': '',
    [`blkio/${group}/blkio.throttle.io_service_bytes_recursive`]:
      '7:3 Read 4096\n7:3 Write 8192\n7:3 Total 12288\n',
  })
  const { io } = readGroupUsage(openCgroups('ab12', root), 'unit_1-3', device)
  expect(io).toEqual({ readBytes: 4096, writtenBytes: 8192 })
})
