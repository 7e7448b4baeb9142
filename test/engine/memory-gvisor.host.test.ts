// Memory of gVisor machines (reliability F10, F12): the claims of all classes, and what is special about a sandbox that saves itself.

import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ForkSpec, MachineRef, RunSpec } from '../../src/engine/engine.ts'
import type { OciEngine, OciOptions } from '../../src/engine/oci/oci-engine.ts'
import { driverDefaults } from '../../src/engine/oci/runtime/driver.ts'
import { keepsMemory } from '../support/memory-kept.ts'
import { memoryClaims } from './claims/memory.ts'
import { memoryCommandClaims } from './claims/memory-commands.ts'
import { openEngineProcess } from './engine-process.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'
import { eventually, kindOf } from './suite.ts'

/** Prints ever larger numbers, which it reads from a file that is deleted. */
const counting: RunSpec = {
  hostname: 'unit',
  entrypoint: [
    'bash',
    '-c',
    'seq 100000 > /c; exec 3< /c; rm /c; while read n <&3; do echo $n; sleep 0.05; done',
  ],
  cmd: [],
  env: {},
  files: [],
  searchDomain: 'stack.internal',
  egress: null,
}

function withEngine(open?: (options: OciOptions) => Promise<OciEngine>, overrides: Partial<OciOptions> = {}) {
  let host: HostEngine
  const suite = createHostSuite('gvisor', () => host)
  beforeAll(async () => {
    host = await openHostEngine({ isolation: 'gvisor', ...overrides }, open)
    await suite.open()
  })
  afterEach(async () => await host.expectAsListed())
  afterAll(async () => await suite.close())

  const counts = async (id: string): Promise<number[]> =>
    (await suite.engine().logs(id, { after: null, since: null, limit: 500 })).map(({ text }) => Number(text))
  return {
    suite,
    paths: (id: string) => host.paths.machine(id),
    counts,
    running: async (changed: Partial<RunSpec> = {}): Promise<MachineRef> => {
      const ref = await suite.running({ ...counting, ...changed })
      await suite.sh(ref, 'echo kept > /root/kept')
      await suite.logged(ref.id, 3)
      return ref
    },
    next: async ({ id, generation }: MachineRef) => {
      const ref = { id, generation: generation + 1 }
      const { resumed } = await suite.engine().start(ref, counting)
      return { ref, resumed }
    },
    /** Passes once the program has counted on from where it was, and from nowhere else. */
    countsOn: async (id: string) => {
      const last = (await counts(id)).at(-1) ?? 0
      await eventually(async () => (((await counts(id)).at(-1) ?? 0) > last + 2 ? true : null))
      const all = await counts(id)
      expect(all).toEqual(all.map((_, i) => i + 1))
    },
  }
}

describe.skipIf(!keepsMemory.gvisor)('memory checkpoints in gVisor', () => {
  const { suite } = withEngine()
  memoryClaims(suite)
  memoryCommandClaims(suite)
})

describe.skipIf(!keepsMemory.gvisor)('the checkpoint of a gVisor machine', () => {
  const { suite, paths, running, next, countsOn } = withEngine()
  const engine = suite.engine
  const forkOf = (source: MachineRef, run: RunSpec = counting): ForkSpec => ({
    id: suite.specOf({}).id,
    source,
    networkGroup: 1,
    run,
  })

  it('holds a deleted file that is open, from which the program reads on', async () => {
    const ref = await running()
    expect(await engine().suspend(ref, 0)).toBe(true)
    expect((await next(ref)).resumed).toBe(true)
    await countsOn(ref.id)
  })

  it('is not used if its pages are cut, although its marks say that they are whole: it starts cold within 15 s', async () => {
    const ref = await running()
    expect(await engine().suspend(ref, 0)).toBe(true)
    const { memory } = paths(ref.id)
    const marks = JSON.parse(await readFile(join(memory, 'manifest.json'), 'utf8')) as {
      files: Record<string, { bytes: number }>
    }
    await truncate(join(memory, 'pages.img'), 4096)
    marks.files['pages.img'] = { bytes: 4096 }
    await writeFile(join(memory, 'manifest.json'), JSON.stringify(marks))
    const began = performance.now()
    const again = await next(ref)
    expect([again.resumed, performance.now() - began < 15_000]).toEqual([false, true])
    expect((await suite.sh(again.ref, 'cat /root/kept')).stdout).toBe('kept\n')
  })

  it('is not used if another version of gVisor or another processor made it', async () => {
    const ref = await running()
    expect(await engine().suspend(ref, 0)).toBe(true)
    const path = join(paths(ref.id).memory, 'manifest.json')
    const manifest = JSON.parse(await readFile(path, 'utf8')) as { madeWith: string }
    expect(manifest.madeWith).toMatch(/^gvisor \S+, [0-9a-f]{12}, a processor with [0-9a-f]{12}$/)
    await writeFile(path, JSON.stringify({ ...manifest, madeWith: `${manifest.madeWith} x` }))
    expect((await next(ref)).resumed).toBe(false)
    expect((await readdir(paths(ref.id).dir)).filter((name) => name.startsWith('memory'))).toEqual([])
  })

  it('of a frozen machine is copied while it sleeps on', async () => {
    const source = await running()
    await engine().freeze(source)
    const fork = forkOf(source)
    expect(await engine().fork([fork])).toMatchObject([{ copied: 'memory' }])
    expect(await suite.status(source.id)).toMatchObject({ frozen: true, state: 'running' })
    expect(await engine().start({ id: fork.id, generation: 1 }, counting)).toMatchObject({ resumed: true })
    expect((await suite.sh({ id: fork.id, generation: 1 }, 'cat /root/kept')).stdout).toBe('kept\n')
    await engine().thaw(source)
    await countsOn(source.id)
    await engine().destroy(fork.id)
  })

  it('sends again what a connection had not delivered when it was made', async () => {
    const server: RunSpec = {
      ...counting,
      entrypoint: [
        'perl',
        '-MIO::Socket::INET',
        '-e',
        '$| = 1; $c = IO::Socket::INET->new(Listen => 5, LocalPort => 8080)->accept; print while <$c>',
      ],
    }
    const listening = await suite.running(server)
    const address = (await suite.status(listening.id))?.address ?? ''
    const client: RunSpec = {
      ...counting,
      entrypoint: [
        'perl',
        '-MIO::Socket::INET',
        '-e',
        `until ($s = IO::Socket::INET->new("${address}:8080")) { select undef, undef, undef, 0.1 }
         $s->print("first\\n"); $s->flush; until (-e "/go") { select undef, undef, undef, 0.1 }
         $s->print("second\\n"); $s->flush; open F, ">/written"; sleep`,
      ],
    }
    const writing = await suite.running(client)
    await suite.logged(listening.id, 1)
    expect(await engine().suspend(listening, 0)).toBe(true)
    await suite.sh(writing, 'touch /go; until [ -e /written ]; do sleep 0.1; done')
    expect(await engine().suspend(writing, 0)).toBe(true)

    for (const [{ id }, run] of [
      [listening, server],
      [writing, client],
    ] as const)
      expect(await engine().start({ id, generation: 2 }, run)).toMatchObject({ resumed: true })
    const lines = await suite.logged(listening.id, 2)
    expect(lines.map(({ text }) => text)).toEqual(['first', 'second'])
  })

  it('lists background processes as lost, and never as ended with 0', async () => {
    const ref = await running()
    const request = { shown: ['sleep'], cwd: null, keepsAwake: false, stdin: null, env: {} }
    await engine().startProcess(ref, { ...request, id: 'proc_1', argv: ['sleep', '543'] })
    expect(await engine().suspend(ref, 0)).toBe(true)
    expect(await engine().processes(ref.id)).toMatchObject([{ state: 'lost', exitCode: null }])
    expect((await next(ref)).resumed).toBe(true)
  })
})

describe.skipIf(!keepsMemory.gvisor)('an engine that dies while a gVisor machine stands', () => {
  let wishes: string
  beforeAll(async () => {
    wishes = await mkdtemp('/var/tmp/berth-wishes-')
  })
  const { suite, running, next, countsOn } = withEngine((options) => openEngineProcess(options, wishes))
  afterAll(async () => await rm(wishes, { recursive: true }))

  it('leaves one that goes on, and can be suspended again', async () => {
    const ref = await running()
    await writeFile(join(wishes, 'engine.checkpoint.dump.before'), 'crash')
    expect(await kindOf(suite.engine().suspend(ref, 0))).toBe('engine_away')
    await suite.reopen()
    await countsOn(ref.id)
    expect(await suite.engine().suspend(ref, 0)).toBe(true)
    expect((await next(ref)).resumed).toBe(true)
  })

  it('and had just saved itself leaves one that the host has ended, never one that exited with 0', async () => {
    const ref = await running()
    await writeFile(join(wishes, 'engine.checkpoint.dump.after'), 'crash')
    expect(await kindOf(suite.engine().suspend(ref, 0))).toBe('engine_away')
    await suite.reopen()
    expect(await suite.exitOf(ref)).toMatchObject({ code: 137, byHost: true, oomKilled: false })
    const again = await next(ref)
    expect([again.resumed, (await suite.sh(again.ref, 'cat /root/kept')).stdout]).toEqual([false, 'kept\n'])
  })
})

const DEBIANS = '/usr/bin/runsc'

describe.skipIf(!existsSync(DEBIANS))('a gVisor that cannot save a sandbox', () => {
  const { suite } = withEngine(undefined, { runtimes: { ...driverDefaults, runsc: DEBIANS } })

  it('is said to keep no memory, and its machines start cold', async () => {
    const { classes } = await suite.engine().capabilities()
    expect(classes.find((one) => one.class === 'gvisor')?.memory).toMatchObject({
      available: false,
      detail: expect.stringContaining('could not save and restore a sandbox, so disks are kept alone'),
    })
    const ref = await suite.running()
    expect(await suite.engine().suspend(ref, 0)).toBe(false)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'exited' })
  })
})

describe.skipIf(!keepsMemory.gvisor)('the checkpoint of a gVisor machine that was made ahead', () => {
  const { suite, running, next, countsOn } = withEngine(undefined, {
    readyMachines: { perKind: 1, memoryReserveMb: 0 },
  })

  it('is resumed, as is one in a fork of it', async () => {
    const engine = suite.engine()
    await running()
    await eventually(async () => ((await engine.capacity()).readyMachines?.waiting === 1 ? true : null))
    const ref = await running()
    expect((await engine.capacity()).readyMachines?.hits).toBe(1)
    expect(await engine.suspend(ref, 0)).toBe(true)
    const again = await next(ref)
    expect(again.resumed).toBe(true)
    await countsOn(ref.id)
    const fork = { id: suite.specOf({}).id, source: again.ref, networkGroup: 1, run: counting }
    expect(await engine.fork([fork])).toMatchObject([{ copied: 'memory' }])
    expect(await engine.start({ id: fork.id, generation: 1 }, counting)).toMatchObject({ resumed: true })
  })
})
