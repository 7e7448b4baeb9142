// Pulls with the real skopeo, umoci and docker-registry: what a reference resolves to, who may pull it, and what happens
// when a registry fails (issue 2).

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { buildImage } from '../../src/engine/oci/images/build.ts'
import { openBuilds } from '../../src/engine/oci/images/builds.ts'
import { collectImages } from '../../src/engine/oci/images/garbage-collection.ts'
import { takeLock } from '../../src/lib/file-lock.ts'
import { openReferences } from '../../src/engine/oci/images/references.ts'
import { openStore } from '../../src/engine/oci/images/store.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { leftoversOf, openTestImages, processesNaming, type TestImages } from '../support/images.ts'
import {
  blob,
  descriptor,
  imageOf,
  indexType,
  type MemoryRegistry,
  serveRegistry,
  startDockerRegistry,
  testImage,
} from '../support/registry.ts'
import { tar } from '../support/tar.ts'

const greeting = tar([{ name: 'etc' }, { name: 'etc/greeting', content: 'hello' }])
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64'

let registry: MemoryRegistry
let lab: TestImages

beforeEach(async () => {
  registry = await serveRegistry()
  lab = await openTestImages({
    registryMirrors: { 'docker.io': registry.address },
    limits: { stallMs: 1500 },
  })
})

afterEach(async () => {
  const leftovers = await leftoversOf(lab)
  await lab.close()
  await registry.close()
  expect(leftovers).toEqual([])
})

async function readGreeting(digest: string): Promise<string> {
  const stored = await lab.images.find(digest)
  return await readFile(join(stored?.rootfs ?? '', 'etc/greeting'), 'utf8')
}

describe('a pull', () => {
  test('by tag or digest returns the digest and the six known fields of the configuration', async () => {
    const image = testImage([greeting], {
      Env: ['A=1', 'nonsense', 'PATH=/bin'],
      Entrypoint: ['/init'],
      Cmd: ['serve', '--now'],
      WorkingDir: '/srv',
      User: 'app:app',
      ExposedPorts: { '80/tcp': {}, '53/udp': {}, '8080': {} },
      Labels: { 'io.containerd.restart': 'always' },
      Volumes: { '/../../etc': {} },
    })
    registry.add('library/app', '1', image)

    const byTag = await lab.images.pull('docker.io/library/app:1')
    expect(byTag).toEqual({
      reference: 'docker.io/library/app:1',
      digest: image.manifest.digest,
      config: {
        env: ['A=1', 'PATH=/bin'],
        entrypoint: ['/init'],
        cmd: ['serve', '--now'],
        workingDir: '/srv',
        user: 'app:app',
        exposedPorts: [8080, 80],
      },
    })
    expect(await readGreeting(byTag.digest)).toBe('hello')

    const pinned = `docker.io/library/app@${image.manifest.digest}`
    expect((await lab.images.pull(pinned)).digest).toBe(byTag.digest)
    expect(await lab.images.list()).toHaveLength(1)
  })

  test('applies layers in order, with replacements and whiteouts', async () => {
    const later = tar([
      { name: 'etc/greeting', content: 'good bye' },
      { name: 'etc/.wh.gone', content: '' },
      { name: 'home/app', uid: 1000, gid: 1001, mode: 0o700 },
    ])
    const first = tar([
      { name: 'etc/gone', content: 'x' },
      { name: 'etc/greeting', content: 'hello' },
    ])
    registry.add('library/app', '1', testImage([first, later]))
    const { digest } = await lab.images.pull('docker.io/library/app:1')
    expect(await readGreeting(digest)).toBe('good bye')
    const { rootfs } = (await lab.images.find(digest)) ?? { rootfs: '' }
    expect(await readdir(join(rootfs, 'etc'))).toEqual(['greeting'])
    expect(await runOrThrow('stat', ['-c', '%u:%g %a', join(rootfs, 'home/app')], { timeoutMs: 5000 })).toBe(
      '1000:1001 700\n',
    )
  })

  test('selects the variant for this host’s platform', async () => {
    const ours = testImage([greeting])
    const other = testImage([tar([{ name: 'other' }])])
    const entry = (image: typeof ours, platform: object) => ({ ...descriptor(image.manifest), platform })
    const index = blob(
      indexType,
      JSON.stringify({
        schemaVersion: 2,
        manifests: [
          entry(other, { os: 'windows', architecture }),
          entry(other, { os: 'linux', architecture: 's390x' }),
          entry(ours, { os: 'linux', architecture }),
        ],
      }),
    )
    registry.add('library/app', 'unused', ours)
    registry.addManifest('library/app', '1', index)
    expect((await lab.images.pull('docker.io/library/app:1')).digest).toBe(ours.manifest.digest)
    // The digest of an index can be pinned like that of a manifest.
    expect((await lab.images.pull(`docker.io/library/app@${index.digest}`)).digest).toBe(ours.manifest.digest)
  })

  test('works with a real registry and an image pushed by skopeo', async () => {
    const real = await startDockerRegistry(null)
    try {
      registry.add('library/app', '1', testImage([greeting]))
      await runOrThrow(
        'skopeo',
        [
          'copy',
          '--insecure-policy',
          '--src-tls-verify=false',
          '--dest-tls-verify=false',
          `docker://${registry.address}/library/app:1`,
          `docker://${real.address}/team/app:v1`,
        ],
        { timeoutMs: 30_000 },
      )
      const images = await lab.openAnother({ registryMirrors: { 'ghcr.io': `http://${real.address}` } })
      const { digest } = await images.pull('ghcr.io/team/app:v1')
      expect(await readGreeting(digest)).toBe('hello')
      await expect(images.pull('ghcr.io/team/app:v2')).rejects.toMatchObject({ kind: 'image_not_found' })
    } finally {
      await real.close()
    }
  })
})

describe('a tag', () => {
  test('is cached for five minutes and then resolved again', async () => {
    registry.add('library/app', '1', testImage([greeting]))
    const first = await lab.images.pull('docker.io/library/app:1')
    const asked = registry.requests.length
    const moved = testImage([tar([{ name: 'etc' }, { name: 'etc/greeting', content: 'moved' }])])
    registry.add('library/app', '1', moved)

    lab.clock.advance(4 * MINUTE)
    expect((await lab.images.pull('docker.io/library/app:1')).digest).toBe(first.digest)
    expect(registry.requests).toHaveLength(asked)

    lab.clock.advance(2 * MINUTE)
    expect((await lab.images.pull('docker.io/library/app:1')).digest).toBe(moved.manifest.digest)
    expect(await readGreeting(first.digest)).toBe('hello')
  })

  test('resolves from the cache while its registry is down, but not if the registry denies access', async () => {
    registry.add('library/app', '1', testImage([greeting]))
    const first = await lab.images.pull('docker.io/library/app:1')
    lab.clock.advance(10 * MINUTE)
    registry.intercept = (_, response) => {
      response.writeHead(503).end()
      return true
    }
    expect(await lab.images.pull('docker.io/library/app:1')).toEqual(first)
    registry.intercept = (_, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="test"' }).end()
      return true
    }
    await expect(lab.images.pull('docker.io/library/app:1')).rejects.toMatchObject({ kind: 'image_denied' })
  })
})

describe('registry credentials', () => {
  // test:right
  const htpasswd = 'test:$2b$05$/FgvuVh3566ZeemT5pRjsOcfGjkkkeR4MojZvZdmdfK0crv3WZZgq\n'
  const auth = (password: string) => Buffer.from(`test:${password}`).toString('base64')

  test('are required for a private image and must be right', async () => {
    const real = await startDockerRegistry(htpasswd)
    try {
      registry.add('library/app', '1', testImage([greeting]))
      await runOrThrow(
        'skopeo',
        [
          'copy',
          '--insecure-policy',
          '--src-tls-verify=false',
          '--dest-tls-verify=false',
          '--dest-creds=test:right',
          `docker://${registry.address}/library/app:1`,
          `docker://${real.address}/private/app:1`,
        ],
        { timeoutMs: 30_000 },
      )
      const pullWith = async (auths: object | null) => {
        const file = join(lab.directory, 'auth.json')
        await writeFile(file, JSON.stringify({ auths: auths ?? {} }))
        const images = await lab.openAnother({
          registryMirrors: { 'ghcr.io': real.address },
          registryAuthFile: auths === null ? null : file,
        })
        return await images.pull('ghcr.io/private/app:1')
      }
      const denied = { kind: 'image_denied', publicMessage: expect.stringContaining('ghcr.io/private/app:1') }
      await expect(pullWith(null)).rejects.toMatchObject(denied)
      await expect(pullWith({ [real.address]: { auth: auth('wrong') } })).rejects.toMatchObject(denied)
      await expect(pullWith({ 'docker.io': { auth: auth('right') } })).rejects.toMatchObject(denied)
      await expect(pullWith({ [real.address]: { auth: auth('right') } })).resolves.toMatchObject({
        reference: 'ghcr.io/private/app:1',
      })
    } finally {
      await real.close()
    }
  })

  test('are not sent to another registry', async () => {
    const file = join(lab.directory, 'auth.json')
    await writeFile(file, JSON.stringify({ auths: { 'quay.io': { auth: auth('right') } } }))
    registry.intercept = (_, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="test"' }).end()
      return true
    }
    const images = await lab.openAnother({ registryAuthFile: file })
    await expect(images.pull('docker.io/library/app:1')).rejects.toMatchObject({ kind: 'image_denied' })
    expect(registry.requests.length).toBeGreaterThan(0)
    // Without credentials skopeo sends an empty user and password.
    const shown = new Set(registry.requests.map(({ authorization }) => authorization))
    expect(shown).not.toContain(`Basic ${auth('right')}`)
  })
})

describe('a pull fails', () => {
  test('with image_not_found for an unknown image, and the message contains no address', async () => {
    await expect(lab.images.pull('docker.io/library/none:1')).rejects.toMatchObject({
      kind: 'image_not_found',
      publicMessage: 'The image docker.io/library/none:1 was not found in its registry.',
    })
  })

  test('with image_unavailable if the registry is down', async () => {
    const images = await lab.openAnother({ registryMirrors: { 'docker.io': '127.0.0.1:1' } })
    await expect(images.pull('docker.io/library/app:1')).rejects.toMatchObject({
      kind: 'image_unavailable',
      publicMessage: expect.not.stringMatching(/127|mirror|skopeo|http/),
    })
  })

  test('with image_unavailable if a layer stalls', async () => {
    const image = testImage([tar([{ name: 'big', content: Buffer.alloc(3_000_000, 'noise') }])])
    registry.add('library/app', '1', image)
    registry.intercept = ({ url }, response) => {
      const layer = image.blobs[1]
      if (!layer || !url?.endsWith(layer.digest)) return false
      response.writeHead(200, { 'Content-Length': layer.size })
      response.write(layer.content.subarray(0, 1000))
      return true
    }
    await expect(lab.images.pull('docker.io/library/app:1')).rejects.toMatchObject({
      kind: 'image_unavailable',
    })
  })

  test('with image_unavailable at the download deadline if a layer trickles', async () => {
    const image = testImage([tar([{ name: 'big', content: Buffer.alloc(3_000_000, 'noise') }])])
    registry.add('library/app', '1', image)
    const timers: NodeJS.Timeout[] = []
    registry.intercept = ({ url }, response) => {
      const layer = image.blobs[1]
      if (!layer || !url?.endsWith(layer.digest)) return false
      response.writeHead(200, { 'Content-Length': layer.size })
      timers.push(setInterval(() => response.write('x'), 100))
      return true
    }
    const images = await lab.openAnother({ limits: { downloadMs: 2000 } })
    await expect(images.pull('docker.io/library/app:1')).rejects.toMatchObject({ kind: 'image_unavailable' })
    for (const timer of timers) clearInterval(timer)
  })

  test('with image_invalid if a layer exceeds the size limit, without downloading all of it', async () => {
    const image = testImage([greeting])
    registry.add('library/app', '1', image)
    let sent = 0
    registry.intercept = ({ url }, response) => {
      if (!url?.endsWith(image.blobs[1]?.digest ?? '')) return false
      const chunk = Buffer.alloc(1024 * 1024)
      response.writeHead(200)
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length
        sent += chunk.length
      }
      response.on('drain', more)
      more()
      return true
    }
    const images = await lab.openAnother({ limits: { compressedBytes: 1024 * 1024 } })
    await expect(images.pull('docker.io/library/app:1')).rejects.toMatchObject({ kind: 'image_invalid' })
    expect(sent).toBeLessThan(100 * 1024 * 1024)
  })
})

describe('reliability S15: a registry cannot redirect the puller', () => {
  test('a registry cannot lead the puller to an address on this host, neither by a redirect nor by a token realm', async () => {
    let visits = 0
    const canary = createServer((socket) => {
      visits += 1
      socket.destroy()
    })
    canary.listen(0, '127.0.0.1')
    await once(canary, 'listening')
    const address = canary.address()
    const port = typeof address === 'object' ? address?.port : 0
    registry.add('library/app', '1', testImage([greeting]))
    const places = [
      `http://127.0.0.1:${port}/x`,
      `https://127.0.0.1:${port}/x`,
      `https://[::ffff:127.0.0.1]:${port}/x`,
      `http://localhost:${port}/x`,
      'http://169.254.169.254/latest/meta-data/',
      'https://169.254.169.254/latest/meta-data/',
      `file:///etc/passwd`,
    ]
    const answers = places.flatMap((place) => [
      { status: 307, headers: { Location: place } },
      { status: 401, headers: { 'WWW-Authenticate': `Bearer realm="${place}",service="x"` } },
    ])
    for (const { status, headers } of answers) {
      registry.intercept = ({ url }, response) => {
        if (url === '/v2/' && status === 307) return false
        response.writeHead(status, headers).end()
        return true
      }
      await expect(lab.images.pull('docker.io/library/app:1')).rejects.toMatchObject({
        kind: expect.stringMatching(/^image_(denied|unavailable)$/),
        publicMessage: expect.not.stringContaining('127.0.0.1'),
      })
    }
    canary.close()
    await once(canary, 'close')
    expect(visits).toBe(0)
  })
})

describe('with concurrent operations', () => {
  test('several pulls of one image share one download, also across two instances', async () => {
    const image = testImage([tar([{ name: 'big', content: Buffer.alloc(3_000_000, 'noise') }])])
    registry.add('library/app', '1', image)
    registry.add('library/app', '2', image)
    const other = await lab.openAnother()
    const pulled = await Promise.all([
      lab.images.pull('docker.io/library/app:1'),
      lab.images.pull('docker.io/library/app:1'),
      lab.images.pull('docker.io/library/app:2'),
      other.pull('docker.io/library/app:1'),
    ])
    expect(new Set(pulled.map(({ digest }) => digest))).toEqual(new Set([image.manifest.digest]))
    const layer = image.blobs[1]?.digest ?? ''
    const downloads = registry.requests.filter(({ method, url }) => method === 'GET' && url.endsWith(layer))
    expect(downloads).toHaveLength(1)
  })

  test('garbage collection spares an image in use by a pull, and a removed image can be pulled again (F22)', async ({
    signal,
  }) => {
    const image = testImage([greeting])
    registry.add('library/app', '1', image)
    const { imagesDir, clock } = lab
    const store = await openStore(imagesDir, clock)
    const builds = await openBuilds(imagesDir, { store, builder: buildImage, clock })
    const references = await openReferences(imagesDir)
    const collector = { imagesDir, store, builds, references, definitions: [], clock }
    const everything = { keepMs: 0, reserveBytes: Number.MAX_SAFE_INTEGER }
    for (let times = 0; times < 2; times++) {
      let pulling = true
      const collecting = (async () => {
        while (pulling && !signal.aborted)
          await Promise.all([collectImages(collector, everything), delay(20)])
      })()
      const { digest } = await lab.images.pull('docker.io/library/app:1')
      expect(await readGreeting(digest)).toBe('hello')
      pulling = false
      await collecting
      expect(await readGreeting(digest)).toBe('hello')
      clock.advance(11 * MINUTE)
      // Unused for long when the collector looks, and used again before it removes.
      const [{ digest: again }] = await Promise.all([
        lab.images.pull('docker.io/library/app:1'),
        collectImages(collector, everything),
      ])
      expect(await readGreeting(again)).toBe('hello')
      clock.advance(11 * MINUTE)
      expect((await collectImages(collector, everything)).removed).toHaveLength(1)
    }
  })

  test('incomplete images of a dead instance are removed at start, and those of a live one are kept', async () => {
    const [dead, living] = ['a'.repeat(64), 'b'.repeat(64)]
    for (const hex of [dead, living])
      await mkdir(join(lab.imagesDir, `making-${hex}`, 'image'), { recursive: true })
    const lock = await takeLock(join(lab.imagesDir, 'locks', living), AbortSignal.timeout(5000))
    await lab.openAnother()
    expect((await readdir(lab.imagesDir)).filter((name) => name.startsWith('making-'))).toEqual([
      `making-${living}`,
    ])
    await lock.release()
    await lab.openAnother()
    expect((await readdir(lab.imagesDir)).filter((name) => name.startsWith('making-'))).toEqual([])
  })

  test('a killed engine leaves no pull running, and the next pull succeeds', async () => {
    const image = testImage([greeting])
    registry.add('library/app', '1', image)
    let stalled = false
    registry.intercept = ({ url }, response) => {
      if (stalled || !url?.endsWith(image.blobs[1]?.digest ?? '')) return false
      stalled = true
      response.writeHead(200, { 'Content-Length': 1000 }).write('x')
      return true
    }
    const script = fileURLToPath(new URL('../support/pull-once.ts', import.meta.url))
    const runDir = join(lab.directory, 'run-killed')
    const child = spawn(process.execPath, [script, lab.imagesDir, runDir, registry.address], {
      stdio: 'inherit',
    })
    while (!stalled) await delay(20)
    expect(await processesNaming(join(runDir, 'images'))).not.toEqual([])
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    await delay(500)
    expect(await processesNaming(join(runDir, 'images'))).toEqual([])

    const images = await lab.openAnother({ runDir })
    await expect(images.pull('docker.io/library/app:1')).resolves.toMatchObject({
      digest: image.manifest.digest,
    })
  })

  test('closing the images aborts running pulls', async () => {
    const image = testImage([greeting])
    registry.add('library/app', '1', image)
    const stalled = Promise.withResolvers<void>()
    registry.intercept = ({ url }) => {
      if (!url?.endsWith(image.blobs[1]?.digest ?? '')) return false
      stalled.resolve()
      return true
    }
    const pull = lab.images.pull('docker.io/library/app:1')
    const refused = expect(pull).rejects.toMatchObject({ kind: 'image_unavailable' })
    await stalled.promise
    await lab.images.close()
    await refused
    expect(await leftoversOf(lab)).toEqual([])
  })
})

test('an artifact that is not an image is refused with image_invalid', async () => {
  const image = imageOf(blob('application/vnd.oci.empty.v1+json', '{}'), [blob('text/plain', 'artifact')])
  registry.add('library/app', '1', image)
  await expect(lab.images.pull('docker.io/library/app:1')).rejects.toMatchObject({ kind: 'image_invalid' })
})
