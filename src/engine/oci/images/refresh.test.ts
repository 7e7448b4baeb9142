import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { boat, type BuiltImages, openBuiltImages, raft } from '../../../../test/support/built-images.ts'
import { DAY, MINUTE } from '../../../lib/clock.ts'
import { definitionDigest } from './builtin.ts'
import { isDue, refreshImages } from './refresh.ts'

let images: BuiltImages

beforeEach(async () => {
  images = await openBuiltImages()
})
afterEach(() => images.close())

const round = () => refreshImages(images.refresher, DAY)
const nextDay = () => images.clock.advance(DAY + MINUTE)
const newest = async () => (await images.builds.find(boat))?.image.digest

describe('an image refresh', () => {
  it('does nothing and contacts no mirror when no image has been used on this host', async () => {
    await round()
    expect(await images.store.list()).toEqual([])
    expect(images.debian.asked).toBe(0)
  })

  it('keeps a build that is up to date and checks Debian once per interval', async () => {
    const built = await images.build(boat)
    await round()
    await round()
    expect(await newest()).toBe(built)
    expect(images.debian.asked).toBe(1)
    nextDay()
    await round()
    expect(images.debian.asked).toBe(2)
  })

  it('rebuilds an image with outdated packages and keeps the old build for existing units', async () => {
    const old = await images.build(boat)
    images.debian.version = '1.1'
    await round()
    const current = await newest()
    expect(current).not.toBe(old)
    expect((await images.builds.use(boat))?.image.digest).toBe(current)
    expect((await images.store.find(old))?.image.digest).toBe(old)
  })

  it('builds at most one image at a time, to leave the host to others in between', async () => {
    await images.build(boat)
    await images.build(raft)
    images.debian.version = '1.1'
    await round()
    expect(await images.store.list()).toHaveLength(3)
    await round()
    expect(await images.store.list()).toHaveLength(4)
    await round()
    expect(await images.store.list()).toHaveLength(4)
  })

  it('serves the existing build while a new one is in progress', async () => {
    const old = await images.build(boat)
    images.debian.version = '1.1'
    const held = Promise.withResolvers<void>()
    images.debian.hold = held.promise
    const under = round()
    await expect.poll(() => images.debian.asked).toBe(1)
    expect((await images.builds.use(boat))?.image.digest).toBe(old)
    held.resolve()
    await under
    expect((await images.builds.use(boat))?.image.digest).not.toBe(old)
  })

  it('skips builds while the disk is nearly full', async () => {
    await images.build(boat)
    images.debian.version = '1.1'
    images.refresher.reserveBytes = Number.MAX_SAFE_INTEGER
    await round()
    expect(await images.store.list()).toHaveLength(1)
    images.refresher.reserveBytes = 0
    await round()
    expect(await images.store.list()).toHaveLength(2)
  })

  it('rebuilds an image whose definition has changed', async () => {
    const old = await images.build(boat)
    const changed = { ...boat, cmd: ['sink'] }
    const refresher = { ...images.refresher, definitions: [changed] }
    await refreshImages(refresher, DAY)
    expect((await images.builds.find(changed))?.image).toMatchObject({ config: { cmd: ['sink'] } })
    expect(await newest()).toBe(old)
  })

  it('uses a build with the old naming scheme until Debian has newer packages', async () => {
    const old = await images.add('berth.local/boat:1', await definitionDigest(boat))
    expect(await images.build(boat)).toBe(old)
    await round()
    expect(await newest()).not.toBe(old)
  })
})

describe('an image refresh that fails', () => {
  it('keeps the previous build, records the failure, and retries with increasing delays', async () => {
    const old = await images.build(boat)
    images.debian.version = '1.1'
    images.debian.buildsFail = true
    await round()
    expect(await newest()).toBe(old)
    expect(await images.builds.stateOf(boat)).toMatchObject({
      failed: { times: 1, reason: 'the package boat is broken' },
    })
    await round()
    expect((await images.builds.stateOf(boat)).failed?.times).toBe(1)
    images.clock.advance(16 * MINUTE)
    await round()
    expect((await images.builds.stateOf(boat)).failed?.times).toBe(2)
    images.debian.buildsFail = false
    images.clock.advance(16 * MINUTE)
    await round()
    expect(await newest()).toBe(old)
    images.clock.advance(16 * MINUTE)
    await round()
    expect(await newest()).not.toBe(old)
    expect(await images.builds.stateOf(boat)).toMatchObject({ failed: null, updates: [] })
  })

  it('because the host is offline keeps the existing build and retries after a delay', async () => {
    const old = await images.build(boat)
    images.debian.isAway = true
    await round()
    await round()
    expect(images.debian.asked).toBe(1)
    images.clock.advance(16 * MINUTE)
    await round()
    expect(images.debian.asked).toBe(2)
    expect((await images.builds.use(boat))?.image.digest).toBe(old)
  })

  it('is due again sooner than a successful one, with exponential backoff', () => {
    const at = new Date('2026-01-01T00:00:00Z')
    const after = (minutes: number) => new Date(at.getTime() + minutes * MINUTE)
    expect(isDue({ at, failed: 1 }, DAY, after(14))).toBe(false)
    expect(isDue({ at, failed: 1 }, DAY, after(15))).toBe(true)
    expect(isDue({ at, failed: 3 }, DAY, after(59))).toBe(false)
    expect(isDue({ at, failed: 3 }, DAY, after(60))).toBe(true)
    expect(isDue({ at, failed: 500 }, DAY, after(24 * 60))).toBe(true)
    // The host's clock was set back.
    expect(isDue({ at, failed: 0 }, DAY, after(-1))).toBe(true)
  })
})

it('concurrent builds of the same image are coalesced into one', async () => {
  const digests = await Promise.all([images.build(boat), images.build(boat), images.build(boat)])
  expect(new Set(digests).size).toBe(1)
  const replaced = digests[0] ?? null
  images.debian.version = '1.1'
  const again = await Promise.all([images.build(boat, replaced), images.build(boat, replaced)])
  expect(new Set([...digests, ...again]).size).toBe(2)
})
