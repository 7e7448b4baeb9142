import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { boat, type BuiltImages, openBuiltImages, raft } from '../../test/support/built-images.ts'
import { builtIns } from '../engine/oci/images/builtin-images.ts'
import type { Inventory, Listed } from '../engine/oci/images/inventory.ts'
import { registerInstance } from '../engine/oci/images/instances.ts'
import { MINUTE } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { parseCommand } from './images-arguments.ts'
import { perform } from './images.ts'

describe('npm run images', () => {
  it.each([
    [[], { kind: 'help' }],
    [['list', '--help'], { kind: 'help' }],
    [['list'], { kind: 'list', json: false }],
    [['check', '--json'], { kind: 'check', json: true }],
    [['remove', 'docker.io/library/app:1'], { kind: 'remove', named: ['docker.io/library/app:1'] }],
    [['remove', '--unused'], { kind: 'remove-unused', json: false }],
  ])('parses %j', (args, command) => {
    expect(parseCommand(args)).toEqual(command)
  })

  it('accepts a built-in image by name, name and version or full reference, and --all', () => {
    for (const name of ['redis', 'redis:7', 'berth.local/redis:7'])
      expect(parseCommand(['build', name])).toMatchObject({ definitions: [{ name: 'redis' }] })
    expect(parseCommand(['build', '--all'])).toMatchObject({ definitions: { length: builtIns.length } })
  })

  it.each([
    [['prune'], 'use list, check, build or remove'],
    [['list', 'redis'], 'list takes nothing else'],
    [['build'], 'or --all'],
    [['build', 'redis', '--all'], 'or --all'],
    [['build', 'windows'], 'berth.local/redis:7'],
    [['build', 'redis', '--json'], 'build has no --json'],
    [['remove'], 'or --unused'],
    [['remove', 'redis', '--unused'], 'or --unused'],
    [['list', '--all'], '--all goes with build'],
  ])('refuses %j with an explanation', (args, words) => {
    expect(() => parseCommand(args)).toThrow(words)
  })
})

let images: BuiltImages
let inventory: Inventory
let said: string[]

beforeEach(async () => {
  images = await openBuiltImages()
  inventory = await images.openInventory()
  said = []
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((text) => said.push(String(text)) > 0)
})
afterEach(async () => {
  vi.restoreAllMocks()
  await images.close()
})

const run = (command: Parameters<typeof perform>[1]) => perform(inventory, command, silentLog)
const build = (...definitions: (typeof boat)[]) => run({ kind: 'build', definitions })
const remove = (...named: string[]) => run({ kind: 'remove', named })
const conditions = async () =>
  Object.fromEntries((await inventory.list()).map(({ reference, condition }) => [reference, condition]))

it('missing images are built once', async () => {
  expect(await conditions()).toEqual({
    'berth.local/boat:1': 'not built yet',
    'berth.local/raft:1': 'not built yet',
  })
  expect(await build(boat, raft)).toBe(0)
  expect(await images.store.list()).toHaveLength(2)
  expect(await build(boat, raft)).toBe(0)
  expect(said).toContain('berth.local/boat:1: is up to date\n')
  expect(await images.store.list()).toHaveLength(2)
})

it('an image with newer Debian packages is listed as out of date and rebuilt on request', async () => {
  await build(boat)
  images.debian.version = '1.1'
  expect(await run({ kind: 'check', json: false })).toBe(0)
  expect(await conditions()).toMatchObject({ 'berth.local/boat:1': 'out of date: boat 1.0 → 1.1' })
  expect(await build(boat)).toBe(0)
  const listed = (await inventory.list()).filter(({ reference }) => reference === 'berth.local/boat:1')
  expect(listed.map(({ version, condition }) => `${version} ${condition}`).toSorted()).toEqual([
    '1.0 an older build',
    expect.stringMatching(/^1\.1 up to date on \d{4}-/),
  ])
})

it('a failed build exits with 1, and the list shows the reason', async () => {
  images.debian.buildsFail = true
  expect(await build(boat)).toBe(1)
  expect((await conditions())['berth.local/boat:1']).toMatch(
    /^not built yet; building it failed once, last on .*: the package boat is broken$/,
  )
})

it('without access to Debian, a check exits with 1 and known packages are still used', async () => {
  await build(boat)
  images.debian.isAway = true
  expect(await run({ kind: 'check', json: false })).toBe(1)
  expect(said.at(-1)).toContain('Temporary failure resolving')
  expect(await build(boat)).toBe(0)
  expect(await conditions()).toMatchObject({ 'berth.local/boat:1': 'up to date as far as known' })
})

it('the JSON list includes every package', async () => {
  await build(boat)
  said = []
  await run({ kind: 'list', json: true })
  const [first] = JSON.parse(said.join('')) as Listed[]
  expect(first).toMatchObject({
    reference: 'berth.local/boat:1',
    kind: 'built-in',
    packages: { boat: '1.0' },
  })
})

describe('removing an image', () => {
  it('is refused while a unit uses it, the unit is named, and it succeeds afterwards', async () => {
    await build(boat)
    const digest = (await inventory.list())[0]?.digest ?? ''
    await images.addMachine('unit_1', digest)
    expect(await remove('berth.local/boat:1')).toBe(1)
    expect(said.at(-1)).toContain('unit_1')
    expect(await images.store.find(digest)).not.toBeNull()
    await images.removeMachine('unit_1')
    expect(await remove(digest.slice('sha256:'.length, 20))).toBe(0)
    expect(await images.store.find(digest)).toBeNull()
    expect(await build(boat)).toBe(0)
    expect(await images.store.find(digest)).not.toBeNull()
  })

  it('is refused while a unit is about to be made from it', async () => {
    await build(boat)
    const digest = (await inventory.list())[0]?.digest ?? ''
    await images.store.hold(digest, async () =>
      expect(await inventory.remove(digest)).toMatch(/just asked for it/),
    )
    expect(await inventory.remove(digest)).toMatch(/just asked for it/)
    images.clock.jump(-2 * MINUTE)
    expect(await inventory.remove(digest)).toBeNull()
    expect(await build(boat)).toBe(0)
    await images.store.hold(digest, async () => {})
    images.clock.advance(2 * MINUTE)
    expect(await inventory.remove(digest)).toBeNull()
  })

  it('that does not exist exits with 1', async () => {
    expect(await remove('docker.io/library/app:1')).toBe(1)
  })

  it('with --unused keeps images in use and the newest builds', async () => {
    const digestOf = (letter: string) => `sha256:${letter.repeat(64)}`
    const old = await images.build(boat)
    images.debian.version = '1.1'
    const current = await images.build(boat, old)
    const [needed, other] = [digestOf('a'), digestOf('b')]
    await images.add('docker.io/library/needed:1', needed)
    await images.add('docker.io/library/other:1', other)
    await images.addMachine('unit_1', needed)
    expect(await run({ kind: 'remove-unused', json: false })).toBe(0)
    const left = (await images.store.list()).map(({ image }) => image.digest)
    expect(left.toSorted()).toEqual([needed, current].toSorted())
    expect(said.at(-1)).toMatch(/^2 images are removed/)
  })

  it('is refused while an instance’s units are unknown', async () => {
    await images.add('docker.io/library/other:1', `sha256:${'b'.repeat(64)}`)
    await images.addMachine('unit_1', `sha256:${'a'.repeat(64)}`)
    const { imagesDir, clock } = images
    const away = { id: 'away', dataDir: `${imagesDir}/nowhere` }

    await registerInstance(imagesDir, away, clock)
    await expect(run({ kind: 'remove-unused', json: false })).rejects.toThrow('not all units are known')
    expect(await remove('docker.io/library/other:1')).toBe(1)
  })
})
