// What a new volume has of a built-in image (decisions/builtin-images.md), with a fault at each side of its unpacking, and
// what has none of it: other mounts, other images, and a volume that has something else.

import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { MachineSpec } from '../../src/engine/engine.ts'
import { unpackVolumeData } from '../../src/engine/oci/storage/volume-data.ts'
import { FailpointError } from '../../src/lib/failpoints.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { createOneFault } from '../support/failpoints.ts'
import { type HostEngine, IMAGE, openHostEngine } from './host-engine.ts'
import { createSuite } from './suite.ts'

const POSTGRES = 'berth.local/postgres:15'
const [MOUNT, PREPARED] = ['/var/lib/postgresql/data', '15.prepared']

const oneFault = createOneFault()
let host: HostEngine
const suite = createSuite(
  async () => ({
    engine: host.engine(),
    configuredImage: '',
    reopen: host.reopen,
    close: async () => await host.close(),
  }),
  { isolation: 'runc', image: POSTGRES, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
)

/** The first unit of an image waits for the build. */
const WITH_BUILD_MS = 500_000

beforeAll(async () => {
  host = await openHostEngine({
    isolation: 'runc',
    failpoints: oneFault.failpoints,
    readyMachines: { perKind: 1, memoryReserveMb: 0 },
  })
  await suite.open()
}, WITH_BUILD_MS)
afterAll(async () => await suite.close())

const volume = { mount: MOUNT, gb: 1 }
const volumeOf = ({ id }: MachineSpec) => host.paths.machine(id).volume

async function expectPrepared(spec: MachineSpec): Promise<void> {
  expect(await readdir(volumeOf(spec))).toEqual([PREPARED])
  const cluster = join(volumeOf(spec), PREPARED)
  const [of, its] = await Promise.all([stat(volumeOf(spec)), stat(cluster)])
  expect([of.mode & 0o777, its.mode & 0o777]).toEqual([0o755, 0o700])
  expect(its.uid).toBeGreaterThan(0)
  expect([of.uid, of.gid]).toEqual([its.uid, its.gid])
  expect(await readFile(join(cluster, 'PG_VERSION'), 'utf8')).toBe('15\n')
  // Whole: as many files as the archive has.
  const image = (await readFile(join(host.paths.machine(spec.id).record), 'utf8')).match(/sha256:([0-9a-f]+)/)
  const archive = join(host.options.imagesDir, image?.[1] ?? '', 'rootfs/usr/share/berth/prepared.tar')
  const listed = await runOrThrow('tar', ['--list', '--file', archive], { timeoutMs: 30_000 })
  const found = await readdir(cluster, { recursive: true })
  expect(found.length + 1).toBe(listed.trim().split('\n').length)
}

it('a new volume begins with what its image has for that mount, and counts it against its team', async () => {
  const spec = await suite.create({ volume })
  await expectPrepared(spec)
  const shown = await runOrThrow('btrfs', ['qgroup', 'show', '--raw', '--sync', host.paths.pool], {
    timeoutMs: 30_000,
  })
  const bytes = Number(/^\s*1\/1\s+(\d+)/m.exec(shown)?.[1])
  expect(bytes).toBeGreaterThan(20 * 1024 ** 2)
  // A copy has what its source has, and nothing is unpacked again.
  const copy = `${spec.id}c`
  await runOrThrow('rm', ['-r', join(volumeOf(spec), PREPARED)], { timeoutMs: 30_000 })
  await suite.start({ id: spec.id, generation: 1 })
  await host.engine().fork([
    {
      id: copy,
      source: { id: spec.id, generation: 1 },
      networkGroup: 1,
      run: null,
    },
  ])
  expect(await readdir(host.paths.machine(copy).volume)).toEqual([])
  for (const id of [copy, spec.id]) await host.engine().destroy(id)
})

it('other mounts and other images have none of it', async () => {
  const elsewhere = await suite.create({ volume: { mount: '/data', gb: 1 } })
  expect(await readdir(volumeOf(elsewhere))).toEqual([])
  const { digest } = await host.engine().pull(IMAGE)
  const other = await suite.create({ volume, imageDigest: digest })
  expect(await readdir(volumeOf(other))).toEqual([])
})

it.each([
  ['before', 'error'],
  ['after', 'error'],
  ['', 'twice'],
] as const)('a fault of its unpacking (%s %s) leaves all of it or no machine', async (when, fault) => {
  // Of a size of its own, for which none was made ahead.
  const size = { cpus: 1, memoryMb: 300 + when.length, pids: 128, diskGb: 1 }
  const spec = suite.specOf({ volume, size })
  oneFault.wish(['engine.create.volume-data', when].filter(Boolean).join('.'), fault)
  const error = await host
    .engine()
    .create(spec)
    .then(
      () => null,
      (thrown: unknown) => thrown,
    )
  expect(oneFault.wished()).toBeNull()
  if (fault === 'error') {
    expect(error).toBeInstanceOf(FailpointError)
    expect(await readdir(host.paths.volumes)).not.toContain(spec.id)
    await host.engine().create(spec)
  }
  await expectPrepared(spec)
  await host.engine().destroy(spec.id)
})

it('a machine that was made ahead has it already', async () => {
  // Until a create finds one of its kind.
  await vi.waitFor(
    async () => {
      const spec = await suite.create({ volume })
      await expectPrepared(spec)
      const record = await readFile(host.paths.machine(spec.id).record, 'utf8')
      expect(JSON.parse(record)).toHaveProperty('madeAs')
    },
    { timeout: 60_000, interval: 2000 },
  )
})

it('half of it is replaced by the whole, and a volume with anything else in it stays as it is', async () => {
  const directory = await mkdtemp('/var/tmp/berth-volume-')
  try {
    const [rootfs, made, at] = ['image', 'data', 'volume'].map((name) => join(directory, name))
    await runOrThrow('mkdir', ['-p', `${rootfs}`, `${made}`, `${at}/kept.making`], { timeoutMs: 30_000 })
    await writeFile(`${made}/file`, 'whole')
    await writeFile(`${at}/kept.making/file`, 'ha')
    await writeFile(`${at}/kept.making/other`, '')
    await runOrThrow('tar', ['--create', `--file=${rootfs}/a.tar`, `--directory=${made}`, '.'], {
      timeoutMs: 30_000,
    })
    const data = { mount: '/data', archive: '/a.tar', directory: 'kept' }
    expect(await unpackVolumeData(at ?? '', rootfs ?? '', data)).toBeNull()
    expect(await readdir(at ?? '', { recursive: true })).toEqual(['kept', 'kept/file'])
    // What cannot be unpacked is not there at all.
    await runOrThrow('mkdir', [`${directory}/empty`], { timeoutMs: 30_000 })
    await writeFile(`${rootfs}/b.tar`, 'no archive')
    const broken = { ...data, archive: '/b.tar' }
    expect(await unpackVolumeData(`${directory}/empty`, rootfs ?? '', broken)).toContain('tar')
    expect(await readdir(`${directory}/empty`)).toEqual([])
    await runOrThrow('mv', [`${at}/kept/file`, `${at}/kept/mine`], { timeoutMs: 30_000 })
    expect(await unpackVolumeData(at ?? '', rootfs ?? '', data)).toBeNull()
    expect(await readdir(at ?? '', { recursive: true })).toEqual(['kept', 'kept/mine'])
  } finally {
    await rm(directory, { recursive: true })
  }
})
