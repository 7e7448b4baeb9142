// Tests the invariant checker itself: with Berth stopped, each thing that is planted on the host, removed from it or changed
// in the database is reported, and nothing else is.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { cgroupPath, openCgroups } from '../../src/engine/oci/kernel/cgroups.ts'
import { namesOf } from '../../src/engine/oci/network/names.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { type Instance, runDirOf } from '../../src/supervisor/instance.ts'
import { eventually } from '../support/berth.ts'
import { createUnit } from '../support/berth-units.ts'
import { expectInvariants, findDifferences, withDatabase } from '../support/host-invariants.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
let unit: Unit
let instance: Instance
let still: number[]

const signalAll = (signal: NodeJS.Signals) => still.forEach((pid) => process.kill(pid, signal))
const STRAY = 'unit_0123456789abcdef0123456789abcdef'
const command = (name: string, ...args: string[]) => runOrThrow(name, args, { timeoutMs: 20_000 })

beforeAll(async () => {
  unit = await createUnit(berth, { name: 'one', image: 'berth.local/debian:12', size: 'nano' })
  instance = await berth.instance()
  await expectInvariants(berth)
  // So that Berth does not repair what is planted.
  const roles = await Promise.all((['engine', 'server'] as const).map((role) => berth.pidOf(role)))
  still = [await berth.supervisorPid(), ...roles.filter((pid) => pid !== null)]
  signalAll('SIGSTOP')
})

afterAll(async () => {
  signalAll('SIGCONT')
  await expectInvariants(berth)
})

type Plant = {
  told: RegExp[]
  /** The machine is then reported as superfluous as well. */
  andMore?: true
  /** Plants the fault and returns a function that removes it. */
  plant: () => Promise<() => Promise<unknown>>
}

const runDir = () => runDirOf(instance)
const table = () => namesOf(instance).table
const group = () => {
  const { main, parent } = openCgroups(instance.id)
  return join(main, parent)
}
const freezer = async (state: string) => {
  const cgroups = openCgroups(instance.id)
  const path = cgroupPath(cgroups, `${unit.id}-1`)
  await writeFile(join(cgroups.main, path, 'freezer.state'), state)
}
const setRun = async (endedAt: Date | null) =>
  await withDatabase(instance, async (db) => {
    const set = { ended_at: endedAt, ...(endedAt ? { billed_to: endedAt } : {}) }
    await db.updateTable('meters').set(set).where('unit_id', '=', unit.id).execute()
  })
const setUnit = async (set: { state: 'running' | 'sleeping' | 'starting'; frozen?: boolean }) =>
  await withDatabase(instance, async (db) => {
    await db.updateTable('units').set(set).where('id', '=', unit.id).execute()
  })

async function directory(path: string): Promise<() => Promise<void>> {
  await mkdir(path)
  return () => rm(path, { recursive: true })
}

const plants: Record<string, Plant> = {
  'the directory of an unknown run': {
    told: [/^\+ unit_0123\w+-1 has a directory$/],
    plant: () => directory(join(runDir(), 'runs', `${STRAY}-1`)),
  },
  'an unknown exit file': {
    told: [/^\+ unit_0123\w+-1 has an exit file$/],
    plant: () => directory(join(runDir(), 'exits', `${STRAY}-1`)),
  },
  'unknown state of a runtime': {
    told: [/^\+ unit_0123\w+-1 is known to its runtime$/],
    plant: () => directory(join(runDir(), 'runc', `${STRAY}-1`)),
  },
  'the description of a finished command': {
    told: [/^\+ a description of a command, exec-1.json$/],
    plant: () => directory(join(runDir(), 'runs', `${unit.id}-1`, 'execs', 'exec-1.json')),
  },
  'the directory of an unknown machine': {
    told: [/^\+ unit_0123\w+ has a directory without a record$/],
    plant: () => directory(join(berth.dataDir, 'machines', STRAY)),
  },
  'an unknown disk': {
    told: [/^\+ a subvolume, disks\/unit_0123/, /^\+ unit_0123\w+ has something in the pool$/],
    plant: async () => {
      const path = join(berth.dataDir, 'pool/disks', STRAY)
      await command('btrfs', 'subvolume', 'create', path)
      return () => command('btrfs', 'subvolume', 'delete', path)
    },
  },
  'an unknown cgroup': {
    told: [/^\+ unit_0123\w+-1 has (no group of |a group)/],
    plant: async () => {
      await mkdir(join(group(), `${STRAY}-1`))
      return () => rmdir(join(group(), `${STRAY}-1`))
    },
  },
  'an unknown process': {
    told: [/^\+ a process of no machine: tail -f/],
    plant: async () => {
      const child: ChildProcess = spawn('tail', ['-f', join(berth.dataDir, 'instance.json')], {
        stdio: 'ignore',
      })
      await once(child, 'spawn')
      return async () => {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
    },
  },
  'an unknown mount': {
    told: [/^\+ a mount, \/run\/berth\/\w+\/images$/],
    plant: async () => {
      await command('mount', '-t', 'tmpfs', 'none', join(runDir(), 'images'))
      return () => command('umount', join(runDir(), 'images'))
    },
  },
  'an unknown network namespace': {
    told: [/^\+ slot 99999 is not whole: /],
    plant: async () => {
      const name = `${namesOf(instance).namespacePrefix}99999`
      await command('ip', 'netns', 'add', name)
      return () => command('ip', 'netns', 'del', name)
    },
  },
  'an unknown member of a network group': {
    told: [/^\+ a member, 10\.\d+\.200\.200 7$/],
    plant: async () => {
      const address = instance.subnet.replace('.0.0/16', '.200.200')
      const element = ['element', 'inet', table(), 'groups']
      await command('nft', 'add', ...element, `{ ${address} : 7 }`)
      return () => command('nft', 'delete', ...element, `{ ${address} }`)
    },
  },
  'a frozen machine of a running unit': {
    told: [/^\+ unit_\w+-1 stands still$/],
    plant: async () => {
      await freezer('FROZEN')
      return () => freezer('THAWED')
    },
  },
  'a running machine of a frozen unit': {
    told: [/^- unit_\w+-1 stands still$/, /^- unit_\w+ is sleeping with 1 open runs$/],
    plant: async () => {
      await setUnit({ state: 'sleeping', frozen: true })
      return () => setUnit({ state: 'running', frozen: false })
    },
  },
  'a unit in a transitional state': {
    told: [/^- unit_\w+ is still starting$/],
    andMore: true,
    plant: async () => {
      await setUnit({ state: 'starting' })
      return () => setUnit({ state: 'running' })
    },
  },
  'a running unit without an open meter': {
    told: [/^- unit_\w+ is running with 0 open runs$/],
    plant: async () => {
      await setRun(new Date())
      return () => setRun(null)
    },
  },
}

describe('the invariant checker reports', () => {
  it.each(Object.entries(plants))('%s', async (_name, { told, andMore, plant }) => {
    const takeBack = await plant()
    try {
      // Polled like in other tests, because a process that is just ending appears only once.
      await eventually(async () => {
        const differences = await findDifferences(berth)
        for (const pattern of told) expect(differences).toContainEqual(expect.stringMatching(pattern))
        const others = differences.filter((difference) => !told.some((pattern) => pattern.test(difference)))
        if (!andMore) expect(others).toEqual([])
      }, 10_000)
    } finally {
      await takeBack()
    }
    await eventually(async () => expect(await findDifferences(berth)).toEqual([]), 10_000)
  })
})
