// Which machines are made ahead and how many, and when those that wait go (decisions/creates.md).

import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { isolationClasses } from '../../src/engine/engine.ts'
import { openStore } from '../../src/engine/oci/images/store.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { deriveImage } from '../support/derived-images.ts'
import { IMAGE, IMAGES_DIR } from './host-engine.ts'
import { hit, miss, readySuite } from './ready-suite.ts'

/** Longer than creates of one burst may lie apart. */
const PAUSE_BETWEEN_BURSTS_MS = 2500

describe.each(isolationClasses)('a machine of class %s that was made ahead', (isolation) => {
  const { suite, host, stats, whenReady, start } = readySuite(isolation)

  it('waits in as many as came at once twice, and all of them serve', async () => {
    const spec = { size: { ...suite.specOf({}).size, pids: 127 } }
    const burst = async () => await Promise.all([1, 2, 3].map(() => suite.running({}, spec)))
    for (const _time of [1, 2]) {
      await burst()
      await delay(PAUSE_BETWEEN_BURSTS_MS)
    }
    const allWait = async () => expect((await stats()).waiting).toBe(3)
    await vi.waitFor(allWait, { timeout: 60_000, interval: 50 })
    const before = await stats()
    const refs = await burst()
    expect((await stats()).hits - before.hits).toBe(3)
    const ids = await Promise.all(refs.map(async (ref) => (await suite.sh(ref, 'hostname')).stdout))
    expect(ids).toEqual(['unit\n', 'unit\n', 'unit\n'])
  })

  it('has a volume of its own where its kind has one', async () => {
    const spec = { volume: { mount: '/data', gb: 1 } }
    expect((await start({}, spec)).outcome).toBe(miss)
    await whenReady()
    const { ref, outcome } = await start({ cmd: ['sh', '-c', 'echo kept >/data/file; sleep 99'] }, spec)
    expect(outcome).toBe(hit)
    const read = async () => (await suite.sh(ref, 'cat /data/file')).stdout
    await vi.waitFor(async () => expect(await read()).toBe('kept\n'), { timeout: 20_000 })
    expect((await suite.sh(ref, 'cat /proc/self/mountinfo')).stdout).not.toContain('volumes/ready-')
    expect(existsSync(`${host().paths.machine(ref.id).volume}/file`)).toBe(true)
    await suite.engine().stop(ref, 0)
    const again = await suite.start({ ...ref, generation: 2 })
    expect((await suite.sh(again, 'cat /data/file; grep -c " /data " /proc/mounts')).stdout).toBe('kept\n1\n')
  })

  it('goes first where a start needs the memory', async () => {
    const { size } = suite.specOf({})
    await whenReady()
    const large = suite.running({}, { size: { ...size, memoryMb: 1_000_000 } })
    await vi.waitFor(async () => expect((await stats()).waiting).toBe(0), { timeout: 20_000, interval: 5 })
    await large
  })

  it('goes when the image that it was made of is gone', async () => {
    const imageDigest = await deriveImage(suite.engine(), [IMAGES_DIR, IMAGE], {
      reference: 'berth.local/gone:1',
      config: { env: [`MADE=${Date.now()}`] },
    })
    await suite.engine().destroy((await suite.running({}, { imageDigest })).id)
    await whenReady()
    const { waiting } = await stats()
    const store = await openStore(IMAGES_DIR, systemClock)
    expect(await store.remove(imageDigest, async () => true)).toBe(true)
    await vi.waitFor(async () => expect((await stats()).waiting).toBe(waiting - 1), { timeout: 20_000 })
  })
})
