import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runOrThrow } from '../../../lib/process.ts'
import { createPaths, type Paths } from '../paths.ts'
import { createSubvolume, deleteSubvolume, limitSubvolume, makeShare } from './btrfs-requests.ts'
import { closePool, openPool } from './pool.ts'

const MB = 1024 * 1024
const GROUP = 7

let directory = ''
let paths: Paths
beforeAll(async () => {
  directory = await mkdtemp('/var/tmp/berth-requests-')
  paths = createPaths({ dataDir: directory, runDir: directory })
  await openPool(paths, 4)
})
afterAll(async () => {
  await closePool(paths)
  await rm(directory, { recursive: true })
})

const btrfs = (...args: string[]) => runOrThrow('btrfs', args, { timeoutMs: 30_000 })

/** Of each qgroup: its limit of referenced bytes, and its parents. */
async function groups(): Promise<Record<string, string>> {
  await btrfs('filesystem', 'sync', paths.pool)
  const rows = (await btrfs('qgroup', 'show', '-pr', '--raw', paths.pool)).split('\n')
  const cells = rows.map((row) => row.trim().split(/\s+/)).filter(([id = '']) => id.includes('/'))
  return Object.fromEntries(cells.map(([id, , , limit, parents]) => [id, `${limit} in ${parents}`]))
}

it('a subvolume that is requested of the kernel has the limits and the share of one that btrfs makes', async () => {
  expect(await makeShare(paths.pool, GROUP, 100 * MB)).toBe(true)
  expect(await makeShare(paths.pool, GROUP, 200 * MB)).toBe(true)
  const disk = `${paths.disks}/requested`
  expect(await createSubvolume(disk, GROUP)).toBe(true)
  expect(await limitSubvolume(disk, 50 * MB)).toBe(true)
  const other = `${paths.disks}/made`
  await btrfs('--quiet', 'subvolume', 'create', '-i', `1/${GROUP}`, other)
  await btrfs('qgroup', 'limit', '50M', other)

  const [id, otherId] = await Promise.all(
    [disk, other].map(async (path) => `0/${(await btrfs('inspect-internal', 'rootid', path)).trim()}`),
  )
  const found = await groups()
  expect(found[id ?? '']).toBe(`${50 * MB} in 1/${GROUP}`)
  expect(found[otherId ?? '']).toBe(found[id ?? ''])
  expect(found[`1/${GROUP}`]).toMatch(`${200 * MB} in `)
})

it('a request is refused where something is in the way, nothing is there, or the file system is another one', async () => {
  expect(await createSubvolume(`${paths.disks}/twice`, GROUP)).toBe(true)
  expect(await createSubvolume(`${paths.disks}/twice`, GROUP)).toBe(false)
  expect(await createSubvolume(`${paths.disks}/${'x'.repeat(300)}`, GROUP)).toBe(false)
  expect(await limitSubvolume(`${paths.disks}/none`, MB)).toBe(false)
  expect(await makeShare('/proc', GROUP, MB)).toBe(false)
})

it('a subvolume is deleted with its files, and nothing that is none or contains another one', async () => {
  const [disk, inner] = [`${paths.disks}/full`, `${paths.disks}/full/inner`]
  expect(await createSubvolume(disk, GROUP)).toBe(true)
  await writeFile(`${disk}/file`, 'x')
  expect(await createSubvolume(inner, GROUP)).toBe(true)
  expect(await deleteSubvolume(disk)).toBe(false)
  expect(existsSync(`${disk}/file`)).toBe(true)
  expect(await deleteSubvolume(inner)).toBe(true)
  const [directory, link] = [`${paths.disks}/directory`, `${paths.disks}/link`]
  await mkdir(directory)
  await symlink(disk, link)
  for (const none of [directory, link, `${paths.disks}/none`, '/proc/self'])
    expect(await deleteSubvolume(none)).toBe(false)
  expect(await deleteSubvolume(disk)).toBe(true)
  expect([existsSync(disk), existsSync(directory)]).toEqual([false, true])
  expect(await deleteSubvolume(disk)).toBe(false)
})
