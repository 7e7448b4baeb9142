import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock } from '../../../../test/support/clock.ts'
import { openCgroups } from './cgroups.ts'
import { LEAST_WEIGHT, nextUse, weighTeams, weightOf } from './team-weights.ts'

it('a team with a small share of the CPU keeps its full weight, and one that uses it all gets the minimum', () => {
  expect(weightOf(0, 1)).toBe(1024)
  expect(weightOf(0.1, 1)).toBe(1024)
  expect(weightOf(0.2, 1)).toBe(256)
  expect(weightOf(1, 1)).toBe(LEAST_WEIGHT)
  // The only user, and a light one.
  expect(weightOf(0.02, 0.02)).toBe(1024)
  // Teams with equal use get equal weights.
  expect(weightOf(0.05, 0.2)).toBe(256)
})

it('CPU use decays by half in five seconds and to under 1% in half a minute', () => {
  const cpus = 4
  let use = nextUse(undefined, 0, 0, cpus)
  const second = (of: number) => (use = nextUse(use, use.cpuUs + of * cpus * 1e6, use.atMs + 1000, cpus))
  for (let s = 0; s < 5; s += 1) second(1)
  expect(use.recent).toBeCloseTo(0.5)
  for (let s = 0; s < 30; s += 1) second(0)
  expect(use.recent).toBeLessThan(0.01)
})

it('a CPU counter that goes backwards is treated as that of a new group', () => {
  const use = nextUse({ cpuUs: 9e6, atMs: 0, recent: 1 }, 1000, 1000, 1)
  expect(use).toEqual({ cpuUs: 1000, atMs: 1000, recent: 0 })
})

describe.each(['version 2', 'version 1'])('team weights in cgroup %s', (version) => {
  let root: string
  beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'berth-weights-'))))
  afterEach(() => rmSync(root, { recursive: true }))

  const write = (path: string, text: string) => {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const files = {
    'version 2': {
      used: (team: number, seconds: number) =>
        write(`berth-ab12/team-${team}/cpu.stat`, `usage_usec ${seconds * 1e6}\nuser_usec 1\n`),
      weight: (team: number) => readFileSync(join(root, `berth-ab12/team-${team}/cpu.weight`), 'utf8'),
    },
    'version 1': {
      used: (team: number, seconds: number) => {
        for (const tree of ['cpu', 'cpuacct', 'freezer']) write(`${tree}/cgroup.procs`, '')
        mkdirSync(join(root, `cpu/berth-ab12/team-${team}`), { recursive: true })
        write(`cpuacct/berth-ab12/team-${team}/cpuacct.usage`, `${seconds * 1e9}\n`)
      },
      weight: (team: number) => readFileSync(join(root, `cpu/berth-ab12/team-${team}/cpu.shares`), 'utf8'),
    },
  }

  it('follow each team’s own CPU use', async () => {
    const { used, weight } = files[version as keyof typeof files]
    if (version === 'version 2') write('cgroup.controllers', 'cpu\n')
    const clock = createTestClock()
    const uses = new Map()
    const present = new Set(['team-1', 'team-2'])
    for (const seconds of [0, 1000]) {
      used(1, seconds)
      used(2, 0)
      await weighTeams(openCgroups('ab12', root), { uses, present, clock })
      clock.advance(5000)
    }
    expect([weight(1), weight(2)]).toEqual(version === 'version 2' ? ['3', '100'] : ['32', '1024'])
  })
})
