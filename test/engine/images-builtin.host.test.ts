// Builds the built-in images from Debian packages. The directory is kept between test runs, so only the first run
// builds.

import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { definitionDigest } from '../../src/engine/oci/images/builtin.ts'
import { builtIns, findBuiltIn } from '../../src/engine/oci/images/builtin-images.ts'
import { type Images, type ImagesOptions, openImages } from '../../src/engine/oci/images/images.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { run, runOrThrow } from '../../src/lib/process.ts'
import { plainImagesOptions, processesNaming } from '../support/images.ts'

const IMAGES_DIR = '/var/lib/berth-test/images'

let directory: string
let images: Images
const progress: string[] = []

const open = async (options: Partial<ImagesOptions> = {}) =>
  await openImages({
    imagesDir: IMAGES_DIR,
    runDir: join(directory, `run-${Math.random()}`),
    ...plainImagesOptions,
    onProgress: (line) => progress.push(line),
    clock: systemClock,
    ...options,
  })

beforeAll(async () => {
  directory = await mkdtemp('/var/tmp/berth-builtin-')
  images = await open()
})

afterAll(async () => {
  await images.close()
  await rm(directory, { recursive: true })
})

async function rootOf(reference: string): Promise<string> {
  const { digest } = await images.pull(reference)
  return (await images.find(digest))?.rootfs ?? ''
}

test('debian:12 is a Debian with apt and contains nothing of the build host', {
  timeout: 600_000,
}, async () => {
  const rootfs = await rootOf('berth.local/debian:12')
  expect(await readFile(join(rootfs, 'etc/debian_version'), 'utf8')).toMatch(/^12\./)
  expect(await readFile(join(rootfs, 'etc/apt/sources.list'), 'utf8')).toContain('deb.debian.org')
  for (const path of [
    'etc/hostname',
    'etc/resolv.conf',
    'etc/machine-id',
    'etc/apt/apt.conf.d/99mmdebstrap',
  ]) {
    await expect(stat(join(rootfs, path))).rejects.toMatchObject({ code: 'ENOENT' })
  }
  expect(await readdir(join(rootfs, 'var/lib/apt/lists'))).not.toContainEqual(
    expect.stringContaining('Packages'),
  )
  expect((await runOrThrow('du', ['-sm', rootfs], { timeoutMs: 60_000 })).split('\t')[0]).toMatch(/^1\d\d$/)
})

test('python:3.11 runs Python with pip and venv', { timeout: 600_000 }, async () => {
  const { digest, config } = await images.pull('berth.local/python:3.11')
  const stored = await images.find(digest)
  expect(config.cmd).toEqual(['sleep', 'infinity'])
  const python = await run(
    'chroot',
    [stored?.rootfs ?? '', 'python', '-c', 'import pip, venv, ssl, sys; print(sys.version_info[:2])'],
    { timeoutMs: 30_000 },
  )
  expect(python.stdout).toBe('(3, 11)\n')
})

test('a built image has no device nodes, setuid bits or file capabilities', {
  timeout: 600_000,
}, async () => {
  const rootfs = await rootOf('berth.local/python:latest')
  const odd = [
    '-type',
    'b',
    '-o',
    '-type',
    'c',
    '-o',
    '-type',
    'p',
    '-o',
    '-type',
    's',
    '-o',
    '-perm',
    '/6000',
  ]
  expect(await runOrThrow('find', [rootfs, ...odd], { timeoutMs: 60_000 })).toBe('')
  expect(await runOrThrow('getcap', ['-r', rootfs], { timeoutMs: 60_000 })).toBe('')
})

test('the second pull of a built-in image builds nothing', async () => {
  await images.pull('berth.local/debian:12')
  progress.length = 0
  const again = await images.pull('berth.local/debian:latest')
  expect(again.reference).toBe('berth.local/debian:latest')
  expect(progress).toEqual([])
})

test.each(['berth.local/debian:11', 'berth.local/windows:latest', 'berth.local/constructor:latest'])(
  '%s is not found',
  async (reference) => {
    await expect(images.pull(reference)).rejects.toMatchObject({ kind: 'image_not_found' })
  },
)

test('a build that exceeds its time limit is ended and leaves nothing behind', async () => {
  const temporary = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('mmdebstrap.'))
  const before = await temporary()
  const imagesDir = join(directory, 'slow')
  const slow = await open({ imagesDir, limits: { buildMs: 3000 } })
  await expect(slow.pull('berth.local/etcd:3.4')).rejects.toMatchObject({
    kind: 'image_unavailable',
    publicMessage: expect.not.stringContaining(directory),
  })
  expect((await readdir(imagesDir)).sort()).toEqual(['builds', 'locks', 'references'])
  expect(await processesNaming(imagesDir)).toEqual([])
  expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(imagesDir)
  expect(await temporary()).toEqual(before)
  await slow.close()
})

test('closing the images aborts a build', async () => {
  const imagesDir = join(directory, 'closing')
  const closing = await open({ imagesDir })
  const pull = expect(closing.pull('berth.local/redis:7')).rejects.toMatchObject({
    kind: 'image_unavailable',
  })
  await expect.poll(() => processesNaming(imagesDir), { timeout: 20_000 }).not.toEqual([])
  await closing.close()
  await pull
  expect(await processesNaming(imagesDir)).toEqual([])
})

describe('the definitions of built-in images', () => {
  test('have unique digests that change with the definition', async () => {
    const digests = await Promise.all(builtIns.map(definitionDigest))
    expect(new Set(digests).size).toBe(builtIns.length)
    const [first] = builtIns
    if (!first) throw new Error('no built-in image')
    expect(await definitionDigest({ ...first, cmd: ['other'] })).not.toBe(await definitionDigest(first))
  })

  test('are the nine images named in the design, and those for clients of E2B, code, agents, browsers and containers', () => {
    expect(builtIns.map(({ name, version }) => `${name}:${version}`)).toEqual([
      'debian:12',
      'base:12',
      'code:1',
      'python:3.11',
      'agent:1',
      'browser:1',
      'docker:20.10',
      'node:24',
      'node:18',
      'postgres:15',
      'mariadb:10.11',
      'redis:7',
      'rabbitmq:3',
      'etcd:3.4',
      'nginx:1.22',
    ])
    expect(findBuiltIn('postgres', 'latest')?.version).toBe('15')
    expect(findBuiltIn('node', 'latest')?.version).toBe('24')
  })
})
