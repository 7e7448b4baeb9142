// The engine is killed while it makes a machine ahead, while one waits, and at each step in which a create and a start take
// one over (decisions/creates.md). The next engine finds each machine whole or not at all, and none that waits.

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFailed, vi } from 'vitest'
import type { MachineSpec } from '../../src/engine/engine.ts'
import type { EngineFailpoint } from '../../src/engine/oci/failpoints.ts'
import type { MachineRecord } from '../../src/engine/oci/records/record.ts'
import { driverDefaults } from '../../src/engine/oci/runtime/driver.ts'
import { createDisk, listDisks } from '../../src/engine/oci/storage/disks.ts'
import { readyName } from '../../src/engine/oci/paths.ts'
import { hostFacts } from '../support/host-facts.ts'
import { openEngineProcess } from './engine-process.ts'
import { IMAGE, openHostEngine } from './host-engine.ts'
import { createSuite, kindOf } from './suite.ts'

const runtimes = { ...driverDefaults, runsc: '/nowhere/runsc' }
const readyMachines = { perKind: 1, memoryReserveMb: 0 }

let wishes: string
let host: Awaited<ReturnType<typeof openHostEngine>>
const suite = createSuite(
  async () => ({
    engine: host.engine(),
    configuredImage: '',
    reopen: host.reopen,
    close: async () => await host.close(),
  }),
  { isolation: 'runc', image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
)

beforeAll(async () => {
  wishes = await mkdtemp('/var/tmp/berth-wishes-')
  host = await openHostEngine({ isolation: 'runc', runtimes, readyMachines }, (options) =>
    openEngineProcess(options, wishes),
  )
  await suite.open()
})
afterAll(async () => {
  await suite.close()
  await rm(wishes, { recursive: true })
})

const wish = async (name: EngineFailpoint, when: string) =>
  await writeFile(join(wishes, `${name}.${when}`), 'crash')
const waiting = async () => (await host.engine().capacity()).readyMachines?.waiting
const run = { files: [{ path: '/srv/boot', content: Buffer.from('boot\n') }] }

/** Uses the kind, so that one is made. */
async function makeOneWait(): Promise<void> {
  const spec = await suite.create()
  await host.engine().destroy(spec.id)
  await vi.waitFor(async () => expect(await waiting()).toBe(1), { timeout: 15_000, interval: 50 })
}

async function expectNoneWaits(): Promise<void> {
  const machines = await host.engine().list()
  const names = await Promise.all(
    machines.map(async ({ id }) => {
      const text = await readFile(host.paths.machine(id).record, 'utf8')
      return (JSON.parse(text) as MachineRecord).madeAs ?? id
    }),
  )
  const facts = await hostFacts(host.instance, host.options.dataDir)
  const strange = facts.filter(
    (fact) => fact.includes('ready-') && !names.some((name) => fact.includes(name)),
  )
  expect(strange).toEqual([])
}

/** What a caller does who was not answered. */
async function tryAgain({ id }: MachineSpec, spec: MachineSpec): Promise<void> {
  await host.engine().create(spec)
  const ref = { id, generation: 1 }
  const kind = await suite.start(ref, run).then(
    () => null,
    (error: { kind?: string }) => error.kind,
  )
  if (kind !== null) {
    expect(kind).toBe('run_lost')
    ref.generation = 2
    await suite.start(ref, run)
  }
  const { stdout } = await suite.sh(ref, 'cat /srv/boot /etc/hostname; hostname; ls /proc | grep -c "^[0-9]"')
  expect(stdout).toMatch(/^boot\nunit\nunit\n\d\n$/)
}

const steps: EngineFailpoint[] = [
  'engine.create.disk',
  'engine.create.network',
  'engine.create.record',
  'engine.start.etc',
  'engine.start.record',
  'engine.start.bundle',
  'engine.start.boot-files',
  'engine.start.go',
  'engine.start.running',
]

it.each(steps)('a crash before or after %s of a create that found one is made good', async (name) => {
  onTestFailed(async () => await suite.reopen())
  for (const when of ['before', 'after']) {
    await makeOneWait()
    const spec = suite.specOf({})
    await wish(name, when)
    const taken = host
      .engine()
      .create(spec)
      .then(() => suite.start({ id: spec.id, generation: 1 }, run))
    expect([when, await kindOf(taken)]).toEqual([when, 'engine_away'])
    await suite.reopen()
    await host.engine().recover([spec.id])
    await host.expectAsListed()
    await expectNoneWaits()
    await tryAgain(spec, spec)
    await host.engine().destroy(spec.id)
  }
})

it('the disk of one that a create was taking over when the engine died is removed by the next engine', async () => {
  const ref = await suite.running()
  const torn = readyName('0123456789abcdef')
  await suite.reopen(
    async () => await createDisk(host.paths, suite.specOf({ id: torn, volume: { mount: '/v', gb: 1 } })),
  )
  expect(await listDisks(host.paths)).not.toContain(torn)
  expect(await readdir(host.paths.aside)).toEqual([])
  await host.expectAsListed()
  await host.engine().destroy(ref.id)
})

it.each(['engine.start.root', 'engine.start.monitor'] as const)(
  'a crash before or after %s of one that is being made leaves nothing of it',
  async (name) => {
    for (const when of ['before', 'after']) {
      const ref = await suite.running()
      await wish(name, when)
      await vi.waitFor(async () => expect(await kindOf(waiting())).toBe('engine_away'), {
        timeout: 15_000,
        interval: 50,
      })
      await suite.reopen()
      await host.engine().recover([ref.id])
      await host.expectAsListed()
      await expectNoneWaits()
      expect((await suite.sh(ref, 'hostname')).stdout).toBe('unit\n')
      await host.engine().destroy(ref.id)
    }
  },
)
