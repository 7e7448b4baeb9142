import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { boat, type BuiltImages, openBuiltImages } from '../../../../test/support/built-images.ts'
import { DAY, HOUR, MINUTE } from '../../../lib/clock.ts'
import { RECENTLY_USED_MS, collectImages, type Limits } from './garbage-collection.ts'

let images: BuiltImages

beforeEach(async () => {
  images = await openBuiltImages()
})
afterEach(() => images.close())

const digestOf = (letter: string) => `sha256:${letter.repeat(64)}`
const roomy: Limits = { keepMs: 30 * DAY, reserveBytes: 0 }
const full: Limits = { keepMs: 30 * DAY, reserveBytes: Number.MAX_SAFE_INTEGER }

async function collect(limits = roomy): Promise<string[]> {
  return (await collectImages(images.collector, limits)).removed.map(({ image }) => image.digest)
}

const use = async (digest: string) => await images.store.hold(digest, async (stored) => stored !== null)

describe('a pulled image', () => {
  it('is removed after 30 days without use', async () => {
    const digest = await images.add('docker.io/library/app:1', digestOf('a'))
    images.clock.advance(29 * DAY)
    expect(await collect()).toEqual([])
    await use(digest)
    images.clock.advance(29 * DAY)
    expect(await collect()).toEqual([])
    images.clock.advance(2 * DAY)
    expect(await collect()).toEqual([digest])
    expect(await images.store.find(digest)).toBeNull()
  })

  it('is kept while a machine uses it, however long that machine sleeps', async () => {
    const digest = await images.add('docker.io/library/app:1', digestOf('a'))
    await images.addMachine('unit_1', digest)
    images.clock.advance(400 * DAY)
    expect(await collect(full)).toEqual([])
    await images.removeMachine('unit_1')
    images.clock.advance(29 * DAY)
    expect(await collect()).toEqual([])
    images.clock.advance(2 * DAY)
    expect(await collect()).toEqual([digest])
  })

  it('is removed early on a nearly full disk, least recently used first, unless just used', async () => {
    const [older, newer, asked] = [digestOf('a'), digestOf('b'), digestOf('c')]
    for (const digest of [newer, older, asked]) await images.add(`docker.io/library/app:${digest[7]}`, digest)
    await use(older)
    images.clock.advance(HOUR)
    await use(newer)
    images.clock.advance(HOUR)
    await use(asked)
    images.clock.advance(RECENTLY_USED_MS - MINUTE)
    expect(await collect()).toEqual([])
    expect(await collect(full)).toEqual([older, newer])
  })

  it('gets a new retention period when the host clock is set back', async () => {
    const digest = await images.add('docker.io/library/app:1', digestOf('a'))
    await use(digest)
    images.clock.jump(-400 * DAY)
    expect(await collect()).toEqual([])
    images.clock.advance(31 * DAY)
    expect(await collect()).toEqual([digest])
  })

  it('takes its saved reference with it when it is removed', async () => {
    const digest = await images.add('docker.io/library/app:1', digestOf('a'))
    const { references } = images.collector
    await references.save('docker.io/library/app:1', { digest, resolvedAt: images.clock.now() })
    await collect()
    expect(await references.find('docker.io/library/app:1')).not.toBeNull()
    images.clock.advance(31 * DAY)
    await collect()
    expect(await references.find('docker.io/library/app:1')).toBeNull()
  })
})

describe('a built-in image', () => {
  it('keeps its newest build, even unused on a full disk', async () => {
    const digest = await images.build(boat)
    images.clock.advance(400 * DAY)
    expect(await collect(full)).toEqual([])
    expect(await images.store.find(digest)).not.toBeNull()
  })

  it('loses an older build once no machine uses that build', async () => {
    const old = await images.build(boat)
    await images.addMachine('unit_1', old)
    images.debian.version = '1.1'
    await images.build(boat, old)
    images.clock.advance(RECENTLY_USED_MS)
    expect(await collect()).toEqual([])
    await images.removeMachine('unit_1')
    images.clock.advance(RECENTLY_USED_MS)
    expect(await collect()).toEqual([old])
  })

  it('of another Berth version is kept for as long as a pulled image', async () => {
    const other = await images.add('berth.local/boat:1', digestOf('d'))
    images.clock.advance(29 * DAY)
    expect(await collect()).toEqual([])
    images.clock.advance(2 * DAY)
    expect(await collect()).toEqual([other])
  })
})

describe('garbage collection yields to a create that uses the image (F22)', () => {
  it('while a machine is being made from it', async () => {
    const digest = await images.add('docker.io/library/app:1', digestOf('a'))
    images.clock.advance(31 * DAY)
    await images.store.hold(digest, async (stored) => {
      images.clock.advance(31 * DAY)
      expect(await collect(full)).toEqual([])
      expect(await images.store.find(digest)).toEqual(stored)
      await images.addMachine('unit_1', digest)
    })
    images.clock.advance(31 * DAY)
    expect(await collect(full)).toEqual([])
  })

  it('between the pull and the create', async () => {
    const digest = await images.add('docker.io/library/app:1', digestOf('a'))
    images.clock.advance(31 * DAY)
    const { store } = images
    // Asked for after the collector has looked, before it removes.
    images.collector.store = {
      ...store,
      list: async () => {
        const found = await store.list()
        await use(digest)
        return found
      },
    }
    expect(await collect(full)).toEqual([])
    expect(await use(digest)).toBe(true)
  })

  it('a create that comes too late finds no image rather than part of one', async () => {
    const digest = await images.add('docker.io/library/app:1', digestOf('a'))
    images.clock.advance(31 * DAY)
    const looks = Array.from({ length: 50 }, async () =>
      images.store.hold(digest, async (stored) => {
        if (stored) await images.store.list()
        return stored === null || (await images.store.find(digest)) !== null
      }),
    )
    const rounds = Array.from({ length: 5 }, () => collect(full))
    expect(await Promise.all(looks)).not.toContain(false)
    await Promise.all(rounds)
  })
})

describe('garbage collection removes nothing', () => {
  it('while the record of a machine cannot be read', async () => {
    const digest = await images.add('docker.io/library/app:1', digestOf('a'))
    await images.addMachine('unit_1', digestOf('b'))
    images.clock.advance(31 * DAY)
    await writeFile(join(images.dataDir, 'machines/unit_1/machine.json'), '{"spec":')
    const { removed, unknown } = await collectImages(images.collector, full)
    expect(removed).toEqual([])
    expect(unknown).toEqual([expect.stringContaining('unit_1')])
    expect(await images.store.find(digest)).not.toBeNull()
  })

  it('while the data directory of an instance is missing, for up to 30 days', async () => {
    const digest = await images.add('docker.io/library/app:1', digestOf('a'))
    await images.addMachine('unit_1', digest)
    await rm(images.dataDir, { recursive: true })
    images.clock.advance(29 * DAY)
    expect((await collectImages(images.collector, full)).unknown).toHaveLength(1)
    images.clock.advance(2 * DAY)
    expect(await collect(full)).toEqual([digest])
  })
})
