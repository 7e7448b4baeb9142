// Built-in images over time: an outdated build is detected with Debian's package lists, rebuilt by the engine's jobs, and
// removed. Also the operator's command, and that a repeated build gives identical files.

import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { definitionDigest } from '../../src/engine/oci/images/builtin.ts'
import { findBuiltIn } from '../../src/engine/oci/images/builtin-images.ts'
import type { Listed } from '../../src/engine/oci/images/inventory.ts'
import { type ImagesOptions, openImages } from '../../src/engine/oci/images/images.ts'
import { statusPathIn } from '../../src/engine/oci/images/packages.ts'
import { openStore } from '../../src/engine/oci/images/store.ts'
import { updatesBy } from '../../src/engine/oci/images/updates.ts'
import { DAY, MINUTE, systemClock } from '../../src/lib/clock.ts'
import { run, runOrThrow } from '../../src/lib/process.ts'
import { loadInstance } from '../../src/supervisor/instance.ts'
import { createTestClock } from '../support/clock.ts'
import { hashTree, plainImagesOptions, processesNaming } from '../support/images.ts'
import { IMAGE, IMAGES_DIR } from './host-engine.ts'

const BUILD_MS = 600_000
const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const debian = findBuiltIn('debian', '12')

let directory: string
let imagesDir: string
/** A copy of the Debian image of all tests, with one package set back to an older version. */
let old: string

beforeAll(async () => {
  directory = await mkdtemp('/var/tmp/berth-maintenance-')
  imagesDir = join(directory, 'images')
  if (!debian) throw new Error('there is no Debian image')
  old = await definitionDigest(debian)
  const store = await openStore(imagesDir, systemClock)
  const fill = async ({ rootfs }: { rootfs: string }) => {
    const source = await rootOfShared()
    await runOrThrow('cp', ['--archive', source.rootfs, rootfs], { timeoutMs: 120_000 })
    const status = await readFile(statusPathIn(rootfs), 'utf8')
    const older = status.replace(/^(Package: curl\n(?:.+\n)*?Version: ).+$/m, '$11.0-1')
    await writeFile(`${statusPathIn(rootfs)}.older`, older)
    await rename(`${statusPathIn(rootfs)}.older`, statusPathIn(rootfs))
    return { reference: IMAGE, config: source.config }
  }
  await store.make({ digest: old, maker: 'a test' }, fill, AbortSignal.timeout(BUILD_MS))
}, BUILD_MS)

afterAll(async () => {
  await rm(directory, { recursive: true })
})

async function open(options: Partial<ImagesOptions>) {
  return await openImages({
    imagesDir: IMAGES_DIR,
    runDir: join(directory, 'run'),
    ...plainImagesOptions,
    clock: systemClock,
    ...options,
  })
}

async function rootOfShared() {
  const images = await open({})
  try {
    const { digest, config } = await images.pull(IMAGE)
    const stored = await images.find(digest)
    if (!stored) throw new Error('the image that was pulled is not there')
    return { rootfs: stored.rootfs, config }
  } finally {
    await images.close()
  }
}

/** Runs the operator's command. */
async function command(...args: string[]) {
  return await run(process.execPath, [program, 'images', ...args], {
    timeoutMs: BUILD_MS,
    env: {
      PATH: process.env['PATH'] ?? '',
      BERTH_DATA_DIR: join(directory, 'data'),
      BERTH_IMAGES_DIR: imagesDir,
    },
  })
}

async function listed(): Promise<Listed[]> {
  const { stdout } = await command('list', '--json')
  return (JSON.parse(stdout) as Listed[]).filter(({ reference }) => reference === IMAGE)
}

test('the check for updates leaves the host’s own apt unchanged', { timeout: BUILD_MS }, async () => {
  const scratch = join(directory, 'asking')
  const before = await hashTree('/etc/apt')
  const lists = await runOrThrow('stat', ['-c', '%Y %Z', '/var/lib/apt/lists'], { timeoutMs: 5000 })
  const store = await openStore(imagesDir, systemClock)
  const rootfs = (await store.find(old))?.rootfs ?? ''
  const [updates] = await updatesBy(scratch)([rootfs], { signal: AbortSignal.timeout(BUILD_MS) })
  expect(updates).toContainEqual({ name: 'curl', has: '1.0-1', offers: expect.stringMatching(/^7\.88/) })
  expect(await hashTree('/etc/apt')).toBe(before)
  expect(await runOrThrow('stat', ['-c', '%Y %Z', '/var/lib/apt/lists'], { timeoutMs: 5000 })).toBe(lists)
  await expect(readFile(join(scratch, 'apt.conf'))).rejects.toMatchObject({ code: 'ENOENT' })
})

test('an outdated image is listed, rebuilt by the engine, and its old build is removed', {
  timeout: BUILD_MS,
}, async () => {
  expect(await command('check')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('curl 1.0-1 → 7.88'),
  })
  expect(await listed()).toMatchObject([{ digest: old, condition: expect.stringMatching(/^out of date/) }])

  const clock = createTestClock()
  const dataDir = join(directory, 'data')
  const instance = { id: (await loadInstance(dataDir)).id, dataDir }
  const maintenance = { updatesEveryMs: DAY, keepMs: DAY }
  const images = await open({
    imagesDir,
    runDir: join(directory, 'run-maintenance'),
    clock,
    instance,
    maintenance,
  })
  try {
    expect((await images.pull(IMAGE)).digest).toBe(old)
    // The engine first checks for outdated images some minutes after its start.
    clock.advance(11 * MINUTE)
    await expect
      .poll(async () => (await images.pull(IMAGE)).digest, { timeout: BUILD_MS / 2, interval: 1000 })
      .not.toBe(old)
    clock.advance(11 * MINUTE)
    await expect.poll(() => images.find(old), { timeout: 60_000 }).toBeNull()
  } finally {
    await images.close({ isEmpty: true })
  }
  const [current, ...others] = await listed()
  expect(others).toEqual([])
  expect(current).toMatchObject({ condition: expect.stringMatching(/^up to date/), machines: [] })
  expect(current?.bytes).toBeGreaterThan(50e6)
  expect(current?.archiveAt).toMatch(/^\d{4}-\d\d-\d\dT/)
  expect(await processesNaming(imagesDir)).toEqual([])
})

test('a repeated build has the same digest, files and timestamps', {
  timeout: BUILD_MS,
}, async () => {
  const [before] = await listed()
  const rootfs = join(imagesDir, before?.digest?.slice('sha256:'.length) ?? '', 'rootfs')
  const kept = join(directory, 'kept')
  await runOrThrow('cp', ['--archive', rootfs, kept], { timeoutMs: 120_000 })
  expect(await command('build', 'debian')).toMatchObject({ stdout: expect.stringContaining('is up to date') })
  expect(await command('remove', '--unused')).toMatchObject({ exitCode: 0 })
  expect(await command('remove', IMAGE)).toMatchObject({ exitCode: 0 })
  expect(await listed()).toMatchObject([{ digest: null, condition: 'not built yet' }])

  const built = await command('build', 'debian')
  expect(built).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('debian:12: ready') })
  expect((await listed()).map(({ digest }) => digest)).toEqual([before?.digest])
  const brief = ['--recursive', '--no-dereference', '--brief', kept, rootfs]
  expect((await run('diff', brief, { timeoutMs: 120_000 })).stdout).toBe('')
  expect(await hashTree(rootfs)).toBe(await hashTree(kept))
})
