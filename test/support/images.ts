// A directory of images of a test's own, and what a pull must leave untouched and clean.

import { createHash } from 'node:crypto'
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Images, type ImagesOptions, openImages } from '../../src/engine/oci/images/images.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createTestClock, type TestClock } from './clock.ts'

export type TestImages = {
  images: Images
  clock: TestClock
  directory: string
  imagesDir: string
  /** Another opening of the same directory, as a second instance would have. */
  openAnother(options?: Partial<ImagesOptions>): Promise<Images>
  close(): Promise<void>
}

/** No registry but the public ones, and nothing is built anew or removed by itself: what else is so, its test says. */
export const plainImagesOptions = {
  reserveGb: 1,
  registryMirrors: {},
  registryAuthFile: null,
  upstreamProxy: null,
  onProgress: () => {},
  instance: null,
  maintenance: null,
  log: silentLog,
} satisfies Partial<ImagesOptions>

export async function openTestImages(options: Partial<ImagesOptions>): Promise<TestImages> {
  const directory = await mkdtemp('/var/tmp/berth-images-')
  const imagesDir = join(directory, 'images')
  const clock = createTestClock()
  const opened: Images[] = []
  const openAnother = async (others: Partial<ImagesOptions> = {}) => {
    const images = await openImages({
      imagesDir,
      runDir: join(directory, `run-${opened.length}`),
      ...plainImagesOptions,
      clock,
      ...options,
      ...others,
    })
    opened.push(images)
    return images
  }
  await plantCanaries(join(directory, 'canaries'))
  return {
    images: await openAnother(),
    clock,
    directory,
    imagesDir,
    openAnother,
    close: async () => {
      for (const images of opened) await images.close()
      await rm(directory, { recursive: true })
    },
  }
}

/** Everything half made, and every process that knows the directory. Empty when all is well. */
export async function leftoversOf({ directory, imagesDir }: TestImages): Promise<string[]> {
  const making = (await readdir(imagesDir)).filter((name) => name.startsWith('making-'))
  const running: string[] = []
  for (const name of await readdir(directory)) {
    if (!name.startsWith('run-')) continue
    const pulls = await readdir(join(directory, name, 'images')).catch(() => [])
    running.push(...pulls)
  }
  return [...making, ...running, ...(await processesNaming(directory))]
}

export async function processesNaming(text: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const commands = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  )
  return commands.filter((command) => command.includes(text)).map((command) => command.replaceAll('\0', ' '))
}

/** What hostile images try to reach: files of the host, as an absolute path and some levels up. */
async function plantCanaries(directory: string): Promise<void> {
  await mkdir(join(directory, 'deep', 'er'), { recursive: true })
  await writeFile(join(directory, 'passwd'), 'root:x:0:0:canary\n', { mode: 0o644 })
  await writeFile(join(directory, 'deep', 'er', 'file'), 'canary', { mode: 0o600 })
  await symlink('passwd', join(directory, 'link'))
}

/** One hash over names within it, kinds, owners, modes, times and contents of a tree. */
export async function hashTree(root: string): Promise<string> {
  const hash = createHash('sha256')
  const visit = async (path: string): Promise<void> => {
    const stats = await lstat(path)
    hash.update(
      JSON.stringify([path.slice(root.length), stats.mode, stats.uid, stats.gid, stats.nlink, stats.mtimeMs]),
    )
    if (stats.isSymbolicLink()) hash.update(await readlink(path))
    if (stats.isFile()) hash.update(await readFile(path))
    if (stats.isDirectory()) for (const name of (await readdir(path)).sort()) await visit(join(path, name))
  }
  await visit(root)
  return hash.digest('hex')
}
