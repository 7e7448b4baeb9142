import { lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { prepareMountPoints } from './mount-points.ts'

let outside: string
let root: string

beforeEach(() => {
  outside = mkdtempSync(join(tmpdir(), 'berth-mount-points-'))
  root = join(outside, 'root')
  mkdirSync(root)
})
afterEach(() => rmSync(outside, { recursive: true }))

const link = (path: string, target: string) => {
  mkdirSync(join(root, dirname(path)), { recursive: true })
  symlinkSync(target, join(root, path))
}
const prepare = async (mount: string | null, isolation: 'runc' | 'gvisor' = 'runc') =>
  await prepareMountPoints(root, { isolation, volume: mount === null ? null : { mount, gb: 1 } })
const isDirectory = (path: string) => lstatSync(join(root, path)).isDirectory()

it('missing mount points are created with mode 0755', async () => {
  expect(await prepare('/srv/data/deep')).toEqual({
    helper: '/run/berth',
    volume: '/srv/data/deep',
    tmp: null,
  })
  for (const path of ['proc', 'sys', 'dev', 'run/berth', 'srv/data/deep']) {
    expect([path, lstatSync(join(root, path)).mode & 0o7777]).toEqual([path, 0o755])
  }
})

it('/tmp is a mount in gVisor only, unless it is a link or holds the volume', async () => {
  const tmp = join(root, 'tmp')
  expect(await prepare('/tmp/data', 'gvisor')).toMatchObject({ volume: '/tmp/data', tmp })
  expect(await prepare(null, 'runc')).toMatchObject({ tmp: null })
  link('/data', '/tmp')
  expect(await prepare('/data', 'gvisor')).toMatchObject({ volume: '/tmp', tmp: null })
  rmSync(tmp, { recursive: true })
  link('/tmp', outside)
  expect(await prepare(null, 'gvisor')).toMatchObject({ tmp: null })
})

it('a new /tmp has mode 1777', async () => {
  await prepare(null, 'gvisor')
  expect(lstatSync(join(root, 'tmp')).mode & 0o7777).toBe(0o1777)
})

describe('symbolic links in an image', () => {
  it('are resolved within the root, and the result contains no links', async () => {
    mkdirSync(join(root, 'var/run'), { recursive: true })
    link('/run', '../../../../../var/run')
    link('/a/b', '/srv')
    link('/srv', 'home/../home')
    mkdirSync(join(root, 'home'))
    expect(await prepare('/a/b/c')).toMatchObject({ helper: '/var/run/berth', volume: '/home/c' })
    expect(isDirectory('home/c')).toBe(true)
  })

  it.each<[string, string]>([
    ['/data', '/dev'],
    ['/data', 'dev/shm'],
    ['/data', '/proc/1'],
    ['/data', '../../sys'],
    ['/data', '/etc'],
    ['/data', '/'],
    ['/data', '..'],
    ['/data', '/run'],
    ['/data', '/run/berth'],
    ['/a/dev', '/'],
    ['/a/berth/deeper', '/run'],
  ])('at the volume path %s that point to %s are refused', async (mount, target) => {
    for (const path of ['dev/shm', 'proc/1', 'etc']) mkdirSync(join(root, path), { recursive: true })
    await prepare(null)
    link(mount.split('/').slice(0, 2).join('/'), target)
    await expect(prepare(mount)).rejects.toMatchObject({
      kind: 'start_refused',
      publicMessage: expect.stringContaining(`Nothing can be mounted at ${mount}: a link`),
    })
  })

  it('from mount points into /dev, and from /dev, /proc or /sys, are refused', async () => {
    link('/run', '/dev')
    await expect(prepare(null)).rejects.toMatchObject({ kind: 'start_refused' })
    rmSync(join(root, 'run'))
    for (const tree of ['dev', 'proc', 'sys']) {
      rmSync(join(root, tree), { recursive: true, force: true })
      link(`/${tree}`, '/srv')
      mkdirSync(join(root, 'srv'), { recursive: true })
      await expect(prepare(null)).rejects.toMatchObject({
        publicMessage: expect.stringContaining(`/${tree}:`),
      })
      rmSync(join(root, tree))
    }
  })

  it('that dangle, loop, pass through /proc/self or a file make the start fail', async () => {
    writeFileSync(join(root, 'file'), '')
    for (const target of [`${outside}/nowhere`, '/data', '/proc/self/root', '/proc/self/cwd', '/file']) {
      link('/data', target)
      for (const mount of ['/data', '/data/deeper']) {
        await expect(prepare(mount)).rejects.toMatchObject({
          kind: 'start_refused',
          publicMessage: expect.stringContaining('cannot be made in the machine'),
        })
      }
      rmSync(join(root, 'data'))
    }
  })

  it('with names that are not UTF-8 are not confused with other paths', async () => {
    mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]))
    symlinkSync(Buffer.concat([Buffer.from('/'), Buffer.from([0xff])]), join(root, 'data'))
    symlinkSync('/dev', join(root, '\u{fffd}'))
    await expect(prepare('/data')).rejects.toMatchObject({ kind: 'start_refused' })
  })
})
