// Images built to attack the host when they are unpacked (reliability I1, I17): each is refused or made harmless,
// nothing outside the images directory changes, and nothing incomplete remains.

import { lstat, readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runOrThrow } from '../../src/lib/process.ts'
import { hashTree, leftoversOf, openTestImages, type TestImages } from '../support/images.ts'
import {
  blob,
  type Blob,
  configType,
  descriptor,
  gzipLayerType,
  imageOf,
  indexType,
  manifestType,
  type MemoryRegistry,
  serveRegistry,
  sha256,
  type TestImage,
  testImage,
} from '../support/registry.ts'
import { tar, type TarEntry } from '../support/tar.ts'

const MB = 1024 * 1024
const limits = {
  unpackedBytes: 64 * MB,
  files: 2000,
  compressedBytes: 16 * MB,
  layers: 128,
  unpackMs: 60_000,
}
const reference = 'docker.io/library/evil:1'

let registry: MemoryRegistry
let lab: TestImages
let canaries: string

beforeAll(async () => {
  registry = await serveRegistry()
  lab = await openTestImages({ registryMirrors: { 'docker.io': registry.address }, limits })
})

afterAll(async () => {
  await lab.close()
  await registry.close()
})

beforeEach(async () => {
  canaries = await hashTree(join(lab.directory, 'canaries'))
})

afterEach(async () => {
  expect(await hashTree(join(lab.directory, 'canaries'))).toBe(canaries)
  expect(await leftoversOf(lab)).toEqual([])
})

/** Pulls the image after the cached tag has expired. */
async function pull(image: TestImage): Promise<string> {
  registry.add('library/evil', '1', image)
  const fresh = await lab.openAnother()
  lab.clock.advance(3_600_000)
  const { digest } = await fresh.pull(reference)
  const stored = await fresh.find(digest)
  return stored?.rootfs ?? ''
}

const pullLayers = async (...layers: TarEntry[][]) => await pull(testImage(layers.map(tar)))

async function expectRefused(pulling: Promise<unknown>, reason: RegExp): Promise<void> {
  await expect(pulling).rejects.toMatchObject({
    kind: 'image_invalid',
    publicMessage: expect.stringMatching(reason),
  })
  await expect(pulling).rejects.toMatchObject({
    publicMessage: expect.stringMatching(/^The image docker\.io\/library\/evil:1 cannot be used: [^/]*\.$/),
  })
}

const fileCapability = Buffer.from('0100000200200000000000000000000000000000', 'hex')

describe('unpacking an image', () => {
  test('removes device nodes, FIFOs, setuid and setgid bits and file capabilities', async () => {
    const rootfs = await pullLayers([
      { name: 'dev' },
      { name: 'dev/sda', type: 'block', device: [8, 0], mode: 0o666 },
      { name: 'data' },
      { name: 'data/mem', type: 'char', device: [1, 1], mode: 0o666 },
      { name: 'data/whiteout', type: 'char', device: [0, 0] },
      { name: 'data/pipe', type: 'fifo' },
      { name: 'bin' },
      { name: 'bin/su', content: 'x', mode: 0o6755, uid: 0 },
      { name: 'bin/su-hard', type: 'hardlink', target: 'bin/su', mode: 0o4755 },
      { name: 'bin/locked', content: 'x', mode: 0o2644 },
      { name: 'bin/shared', type: 'directory', mode: 0o2775, gid: 50 },
      {
        name: 'bin/ping',
        content: 'x',
        mode: 0o755,
        pax: { 'SCHILY.xattr.security.capability': fileCapability },
      },
      { name: 'tmp', mode: 0o1777 },
    ])
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
    expect(await runOrThrow('find', [rootfs, ...odd], { timeoutMs: 5000 })).toBe('')
    expect(await runOrThrow('getcap', ['-r', rootfs], { timeoutMs: 5000 })).toBe('')
    expect(await readdir(join(rootfs, 'data'))).toEqual([])
    expect((await stat(join(rootfs, 'bin/su'))).mode & 0o7777).toBe(0o755)
    expect((await stat(join(rootfs, 'tmp'))).mode & 0o7777).toBe(0o1777)
  })

  test.each(['dev', 'proc', 'sys'])('replaces a link or file at /%s by an empty directory', async (name) => {
    for (const entry of [
      { name, type: 'symlink' as const, target: `${lab.directory}/canaries` },
      { name, content: 'x' },
      { name, type: 'symlink' as const, target: '/proc/self/fd' },
    ]) {
      const rootfs = await pullLayers([{ name: 'a' }, entry])
      expect((await lstat(join(rootfs, name))).isDirectory()).toBe(true)
      expect(await readdir(join(rootfs, name))).toEqual([])
    }
  })

  test('handles a name that is not UTF-8 like any other', async () => {
    const name = Buffer.from([0x61, 0x2f, 0xff, 0xfe, 0x0a, 0x22])
    const inside = Buffer.concat([name, Buffer.from('/su')])
    const rootfs = await pullLayers([
      { name: 'a' },
      { name, type: 'directory' },
      { name: inside, content: 'x', mode: 0o4755 },
    ])
    const path = Buffer.concat([Buffer.from(`${rootfs}/`), inside])
    expect((await stat(path)).mode & 0o7777).toBe(0o755)
  })

  test('makes the root readable and closes it to other users of the host', async () => {
    const rootfs = await pullLayers([{ name: './', type: 'directory', mode: 0o2700, uid: 7 }, { name: 'a' }])
    expect((await stat(rootfs)).mode & 0o7777).toBe(0o755)
    expect((await stat(join(rootfs, '..'))).mode & 0o777).toBe(0o700)
    expect((await stat(lab.imagesDir)).mode & 0o777).toBe(0o700)
  })
})

describe('unpacking writes nothing outside the root for', () => {
  const canary = () => `${lab.directory}/canaries`
  const up = '../'.repeat(12)

  test.each<[string, () => TarEntry[][]]>([
    ['absolute names', () => [[{ name: `${canary()}/passwd`, content: 'owned' }]]],
    ['names with ..', () => [[{ name: `${up}${canary().slice(1)}/passwd`, content: 'owned' }]]],
    [
      'a symlink, then a file through it',
      () => [
        [
          { name: 'out', type: 'symlink', target: canary() },
          { name: 'out/passwd', content: 'owned' },
        ],
      ],
    ],
    [
      'a symlink in one layer, a file through it in the next',
      () => [
        [{ name: 'out', type: 'symlink', target: canary() }],
        [{ name: 'out/passwd', content: 'owned' }],
      ],
    ],
    [
      'a relative symlink that climbs',
      () => [
        [{ name: 'out', type: 'symlink', target: `${up}${canary().slice(1)}` }],
        [{ name: 'out/passwd', content: 'owned', mode: 0o777, uid: 1000 }],
      ],
    ],
    [
      'a symlink onto the file itself',
      () => [
        [{ name: 'passwd', type: 'symlink', target: `${canary()}/passwd` }],
        [{ name: 'passwd', content: 'owned', mode: 0o777, uid: 1000 }],
      ],
    ],
    [
      'a whiteout through a symlink',
      () => [[{ name: 'out', type: 'symlink', target: canary() }], [{ name: 'out/.wh.passwd', content: '' }]],
    ],
    [
      'an opaque whiteout through a symlink',
      () => [
        [{ name: 'out', type: 'symlink', target: canary() }],
        [{ name: 'out/.wh..wh..opq', content: '' }],
      ],
    ],
    [
      'a whiteout of ..',
      () => [
        [
          { name: 'a/.wh...', content: '' },
          { name: '.wh..', content: '' },
        ],
      ],
    ],
  ])('%s', async (_, layers) => {
    // It may be refused or unpacked within the root; the canaries are checked after each test.
    const outcome = await pullLayers(...layers()).then(
      () => 'kept inside',
      (error: unknown) => error,
    )
    if (outcome !== 'kept inside') expect(outcome).toMatchObject({ kind: 'image_invalid' })
  })

  test.each<[string, (path: string) => TarEntry[]]>([
    ['absolute', (path) => [{ name: 'link', type: 'hardlink', target: path }]],
    ['climbing', (path) => [{ name: 'link', type: 'hardlink', target: `${up}${path.slice(1)}` }]],
    [
      'through a symlink',
      (path) => [
        { name: 'out', type: 'symlink', target: join(path, '..') },
        { name: 'link', type: 'hardlink', target: 'out/passwd' },
      ],
    ],
  ])('a hard link to a file of the host (%s)', async (_, entries) => {
    const path = `${canary()}/passwd`
    const outcome = await pullLayers([...entries(path), { name: 'after', content: 'x' }]).catch(
      (error: unknown) => error,
    )
    if (typeof outcome === 'string') {
      expect(await readFile(join(outcome, 'link'), 'utf8').catch(() => '')).not.toContain('canary')
    } else expect(outcome).toMatchObject({ kind: 'image_invalid' })
    expect((await stat(path)).nlink).toBe(1)
  })

  test('links to absolute paths, which are kept as they are', async () => {
    const rootfs = await pullLayers([{ name: 'shadow', type: 'symlink', target: '/etc/shadow' }])
    expect(await readlink(join(rootfs, 'shadow'))).toBe('/etc/shadow')
  })
})

describe('unpacking is limited for', () => {
  test('a small layer that expands beyond the size limit', async () => {
    const zeros = tar([{ name: 'zeros', content: Buffer.alloc(300 * MB) }])
    await expectRefused(pull(testImage([zeros])), /too large unpacked|cannot be unpacked/)
  })

  test('many files that exceed the size limit together', async () => {
    const zeros = Buffer.alloc(20 * MB)
    const layer = tar(Array.from({ length: 10 }, (_, n) => ({ name: `zeros${n}`, content: zeros })))
    await expectRefused(pull(testImage([layer])), /too large unpacked/)
  })

  test('too many files', async () => {
    const layer = tar(Array.from({ length: 20_000 }, (_, n) => ({ name: `f${n}`, content: '' })))
    await expectRefused(pull(testImage([layer])), /too many files/)
  })

  test('deeply nested directories in one layer or several', async () => {
    const entry = (path: string, content?: string): TarEntry => ({
      name: 'long',
      pax: { path },
      ...(content === undefined ? { type: 'directory' } : { content }),
    })
    const directory = (depth: number) => entry(Array(depth).fill('d').join('/'))
    const nested = (from: number, to: number) =>
      tar(Array.from({ length: to - from }, (_, n) => directory(from + n + 1)))
    await expectRefused(pull(testImage([nested(0, 1500)])), /too deep/)
    await expectRefused(pull(testImage([nested(0, 100), nested(100, 300)])), /too deep/)
    const file = entry(`${Array(200).fill('e').join('/')}/file`, 'x')
    await expectRefused(pull(testImage([tar([file])])), /too deep/)
  })

  test('images that need too much CPU time', async () => {
    const zeros = tar(
      Array.from({ length: 9 }, (_, n) => ({ name: `z${n}`, content: Buffer.alloc(16 * MB, n) })),
    )
    registry.add('library/evil', '1', testImage([zeros, zeros, zeros, zeros]))
    const images = await lab.openAnother({ limits: { ...limits, unpackedBytes: 1024 * MB, unpackCpuS: 1 } })
    lab.clock.advance(3_600_000)
    await expectRefused(images.pull(reference), /takes too long/)
  })

  test('too many layers', async () => {
    const layer = tar([{ name: 'a' }])
    await expectRefused(pull(testImage(Array.from({ length: 129 }, () => layer))), /129 layers/)
  })

  test('a compressed size above the limit, before anything is downloaded', async () => {
    const layer = { ...blob(gzipLayerType, 'x'), size: 17 * MB }
    const before = registry.requests.length
    await expectRefused(pull(imageOf(configBlob({}), [layer])), /bytes, and 16777216 are allowed/)
    expect(registry.requests.slice(before).filter(({ url }) => url.includes('/blobs/'))).toEqual([])
  })

  test('a bomb, while a concurrent pull of a good image succeeds', async () => {
    const zeros = tar(
      Array.from({ length: 10 }, (_, n) => ({ name: `z${n}`, content: Buffer.alloc(20 * MB) })),
    )
    const good = testImage([tar([{ name: 'good', content: 'good' }])])
    registry.add('library/good', '1', good)
    const [bomb, pulled] = await Promise.allSettled([
      pull(testImage([zeros])),
      lab.images.pull('docker.io/library/good:1'),
    ])
    expect(bomb.status).toBe('rejected')
    expect(pulled).toMatchObject({ status: 'fulfilled', value: { digest: good.manifest.digest } })
  })

  // Reliability F17.
  test('a host that runs out of disk space', async () => {
    registry.add('library/evil', '1', testImage([tar([{ name: 'a', content: 'x' }, { name: 'full' }])]))
    const images = await lab.openAnother({ reserveGb: 1_000_000 })
    lab.clock.advance(3_600_000)
    await expect(images.pull(reference)).rejects.toMatchObject({ kind: 'host_full' })
  })
})

describe('the puller refuses', () => {
  const sound = () =>
    testImage([
      tar([
        { name: 'etc', mode: 0o755 },
        { name: `n${Math.random()}`, content: 'x' },
      ]),
    ])

  test('a layer that does not match its digest', async () => {
    const image = sound()
    registry.add('library/evil', '1', image)
    const [, layer] = image.blobs
    const other = gzipSync(tar([{ name: 'other', content: 'y' }]))
    registry.addBlob({ ...(layer as Blob), content: other })
    const images = await lab.openAnother()
    lab.clock.advance(3_600_000)
    await expect(images.pull(reference)).rejects.toMatchObject({ kind: 'image_invalid' })
  })

  test('a configuration that does not match its digest', async () => {
    const image = sound()
    registry.add('library/evil', '1', image)
    registry.addBlob({ ...(image.blobs[0] as Blob), content: Buffer.from('{"config":{"User":"0"}}') })
    const images = await lab.openAnother()
    lab.clock.advance(3_600_000)
    await expect(images.pull(reference)).rejects.toMatchObject({ kind: 'image_invalid' })
  })

  test('a manifest that does not match the pinned digest', async () => {
    const image = sound()
    const pinned = `sha256:${'0'.repeat(64)}`
    registry.add('library/evil', pinned, image)
    await expect(lab.images.pull(`docker.io/library/evil@${pinned}`)).rejects.toMatchObject({
      kind: 'image_invalid',
    })
  })

  test('a layer of a different size than the manifest states', async () => {
    const image = sound()
    const [config, layer] = image.blobs as [Blob, Blob]
    for (const size of [layer.size - 1, layer.size + 1]) {
      const lying = imageOf(config, [{ ...layer, size }])
      await expect(pull(lying)).rejects.toMatchObject({
        kind: expect.stringMatching(/^image_(invalid|unavailable)$/),
      })
    }
  })

  test('a layer whose unpacked content does not match the configuration', async () => {
    const layer = tar([{ name: 'a', content: 'x' }])
    const config = configBlob({}, [sha256('something else')])
    await expectRefused(pull(imageOf(config, [blob(gzipLayerType, gzipSync(layer))])), /cannot be unpacked/)
  })

  test.each<[string, Buffer]>([
    ['not gzip', Buffer.from('not gzip at all')],
    ['truncated gzip', gzipSync(tar([{ name: 'a', content: Buffer.alloc(MB, 'noise') }])).subarray(0, 1000)],
    ['not tar', gzipSync(Buffer.alloc(10_000, 'noise'))],
  ])('a layer that is %s', async (_, content) => {
    await expectRefused(
      pull(imageOf(configBlob({}, [sha256(content)]), [blob(gzipLayerType, content)])),
      /unpacked/,
    )
  })

  test.each([
    'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
    'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip',
    'application/vnd.oci.image.layer.v1.tar+zstd',
    'text/html',
  ])('a layer of the type %s', async (mediaType) => {
    await expectRefused(
      pull(imageOf(configBlob({}), [blob(mediaType, 'x')])),
      /neither tar nor tar with gzip/,
    )
  })

  test('a layer with URLs of its own', async () => {
    const layer = blob(gzipLayerType, 'x')
    const urls = ['http://169.254.169.254/']
    const manifest = {
      schemaVersion: 2,
      config: descriptor(configBlob({})),
      layers: [{ ...descriptor(layer), urls }],
    }
    registry.addManifest('library/evil', '1', blob(manifestType, JSON.stringify(manifest)))
    const images = await lab.openAnother()
    lab.clock.advance(3_600_000)
    await expectRefused(images.pull(reference), /not one of an image/)
  })

  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64'
  test.each<[string, (image: TestImage) => object]>([
    [
      'both an index and an image',
      (image) => ({ ...(JSON.parse(image.manifest.content.toString()) as object), manifests: [] }),
    ],
    [
      'an index that leads to an index',
      () => ({
        manifests: [
          { mediaType: indexType, digest: sha256('x'), size: 1, platform: { os: 'linux', architecture } },
        ],
      }),
    ],
    ['an empty index', () => ({ manifests: [] })],
    ['an index without digests', () => ({ manifests: [{ mediaType: manifestType }] })],
    ['a manifest without layers', () => ({ config: descriptor(configBlob({})), layers: [] })],
    [
      'a manifest with a path for a digest',
      () => ({ config: { ...descriptor(configBlob({})), digest: 'sha256:../../x' }, layers: [] }),
    ],
    ['an old manifest', () => ({ schemaVersion: 1, fsLayers: [] })],
  ])('%s as a manifest', async (_, document) => {
    const manifest = blob(indexType, JSON.stringify({ schemaVersion: 2, ...document(sound()) }))
    registry.addManifest('library/evil', '1', manifest)
    const images = await lab.openAnother()
    lab.clock.advance(3_600_000)
    await expect(images.pull(reference)).rejects.toMatchObject({ kind: 'image_invalid' })
  })
})

describe('the puller refuses a configuration with', () => {
  const layer = tar([{ name: 'a' }])
  test.each<[string, object, RegExp]>([
    ['USER beyond 2^31', { User: '2147483648' }, /User/],
    ['a group beyond 2^31', { User: '0:4294967296' }, /User/],
    ['USER with odd characters', { User: 'root\nx' }, /User/],
    ['USER that is a number', { User: 0 }, /User/],
    ['WORKDIR in /proc', { WorkingDir: '/proc/self/fd/8' }, /WorkingDir/],
    ['WORKDIR that climbs into /proc', { WorkingDir: '/srv/../proc/self/cwd' }, /WorkingDir/],
    ['an endless WORKDIR', { WorkingDir: `/${'x'.repeat(5000)}` }, /WorkingDir/],
    ['ENTRYPOINT that is text', { Entrypoint: '/bin/sh -c x' }, /Entrypoint/],
    ['ENTRYPOINT with NUL', { Entrypoint: ['/bin/sh\0'] }, /Entrypoint/],
    ['an argument of 100 kB', { Cmd: ['x'.repeat(100_000)] }, /Cmd/],
    ['ten thousand variables', { Env: Array.from({ length: 10_000 }, (_, n) => `V${n}=1`) }, /Env/],
    ['a variable of 100 kB', { Env: [`A=${'x'.repeat(100_000)}`] }, /Env/],
    [
      'half a megabyte of variables',
      { Env: Array.from({ length: 10 }, (_, n) => `V${n}=${'x'.repeat(60_000)}`) },
      /Env/,
    ],
    ['a variable that is no text', { Env: [1] }, /Env/],
  ])('%s', async (_, config, field) => {
    await expectRefused(pull(testImage([layer], config)), field)
  })

  test.each(['null', '[]', '"x"', 'not JSON', '{"config":[]}', '{"config":{"__proto__":1,"User":["x"]}}'])(
    'a document like %s',
    async (text) => {
      const image = imageOf(blob(configType, text), [blob(gzipLayerType, gzipSync(layer))])
      await expect(pull(image)).rejects.toMatchObject({ kind: 'image_invalid' })
    },
  )

  test('no relative WORKDIR, which is resolved from the root', async () => {
    registry.add('library/evil', '1', testImage([layer], { WorkingDir: '../srv/./app/' }))
    const images = await lab.openAnother()
    lab.clock.advance(3_600_000)
    expect((await images.pull(reference)).config.workingDir).toBe('/srv/app')
  })
})

function configBlob(config: object, diffIds: string[] = [sha256('x')]): Blob {
  const rootfs = { type: 'layers', diff_ids: diffIds }
  return blob(configType, JSON.stringify({ architecture: 'amd64', os: 'linux', config, rootfs }))
}
