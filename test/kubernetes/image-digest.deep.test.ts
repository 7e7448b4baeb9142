// The image of one commit is the same wherever and whenever it is built: two checkouts, of which the second one has another place,
// name of machine, time zone, language, mask of permissions and cache of npm than the first, which was built some minutes before.

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { loadBuildSettings } from '../../src/config.ts'
import { buildRunsc } from '../../src/engine/oci/runsc-build/build.ts'
import { BUILT_RUNSC } from '../../src/engine/oci/runsc-build/pinned.ts'
import { DAY, HOUR } from '../../src/lib/clock.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { project } from '../support/clients.ts'

type Image = { digest: string; layers: string[] }

/** Of both images, as `SOURCE_DATE_EPOCH`: what a build took from the clock is younger. In seconds. */
const EPOCH = 1_735_689_600

const LISTED = ['--list', '--verbose', '--full-time', '--utc', '--numeric-owner']

let directory: string
/** A commit that comes between both builds is in neither. */
let revision: string
const images: Image[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-image-digest-'))
  revision = (await runOrThrow('git', ['rev-parse', 'HEAD'], { cwd: project, timeoutMs: HOUR })).trim()
})
afterAll(async () => await rm(directory, { recursive: true }))

async function build(place: string, umask: string, settings: Record<string, string>): Promise<Image> {
  const at = (name: string) => join(directory, place, name)
  await mkdir(at('tmp'), { recursive: true })
  const commands = [
    `hostname ${place.replaceAll('/', '-')}`,
    `umask ${umask}`,
    `git clone --quiet "${project}" "${at('checkout')}"`,
    `cd "${at('checkout')}"`,
    `git checkout --quiet ${revision}`,
    `exec npm run --silent image -- --out "${at('image')}"`,
  ]
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
    ...loadBuildSettings(),
    TMPDIR: at('tmp'),
    SOURCE_DATE_EPOCH: String(EPOCH),
    ...settings,
  }
  const said = await runOrThrow('unshare', ['--uts', 'sh', '-ec', commands.join('\n')], {
    env,
    timeoutMs: HOUR,
  })
  const digest = said.trim().split('\n').at(-1) ?? ''
  const blob = (name: string) => join(at('image/oci/blobs'), name.replace(':', '/'))
  const manifest = JSON.parse(await readFile(blob(digest), 'utf8')) as { layers: { digest: string }[] }
  return { digest, layers: manifest.layers.map((layer) => blob(layer.digest)) }
}

/** Each file of the layers with its digest, and everything with its owner, permissions and time. */
async function contentOf({ layers }: Image): Promise<string[]> {
  const lines = []
  for (const layer of layers) {
    const each = '--to-command=echo "$TAR_FILENAME $(sha256sum)"'
    for (const args of [LISTED, ['--extract', each]]) lines.push(...(await tar(layer, args)))
  }
  return lines
}

async function tar(layer: string, args: string[]): Promise<string[]> {
  const options = { timeoutMs: HOUR, maxOutputBytes: 64 * 1024 * 1024 }
  return (await runOrThrow('tar', [...args, '--file', layer], options)).split('\n').filter(Boolean)
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

it(
  'an image that is built twice has the same digest',
  async () => {
    images.push(await build('one', '022', { LC_ALL: 'C.UTF-8', TZ: 'UTC' }))
    const cache = join(directory, 'npm')
    const others = { LC_ALL: 'C', TZ: 'Asia/Kolkata', npm_config_cache: cache }
    images.push(await build('another/which/is/deeper', '077', others))
    const [one, other] = images as [Image, Image]
    process.stdout.write(`the digests are ${one.digest} and ${other.digest}\n`)
    if (one.digest === other.digest) return
    const [before, after] = [await contentOf(one), await contentOf(other)]
    const [ofOne, ofOther] = [new Set(before), new Set(after)]
    const differences = [
      ...before.filter((line) => !ofOther.has(line)),
      ...after.filter((line) => !ofOne.has(line)),
    ].toSorted()
    expect.fail(`the images differ in ${differences.length} lines:\n${differences.slice(0, 100).join('\n')}`)
  },
  HOUR,
)

it('nothing in the image is younger than its commit', async () => {
  const [{ layers }] = images as [Image]
  const times = []
  for (const layer of layers)
    for (const line of await tar(layer, LISTED)) {
      const [, time = ''] = /(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)/.exec(line) ?? []
      if (Date.parse(`${time}Z`) > EPOCH * 1000) times.push(line)
    }
  expect(times).toEqual([])
  const users = await tar(layers[0] ?? '', ['--extract', '--to-stdout', './etc/shadow'])
  const changed = users.map((line) => Number(line.split(':')[2]))
  expect(Math.max(...changed)).toBeLessThanOrEqual((EPOCH * 1000) / DAY)
})

it(
  'gVisor is the same program from another build',
  async () => {
    const again = join(directory, 'runsc/again/runsc')
    await buildRunsc(again, loadBuildSettings())
    expect(await digestOf(again)).toBe(await digestOf(BUILT_RUNSC))
  },
  HOUR,
)
