// How the pulls of one team affect other teams (decisions/images.md), with real registries.

import { afterEach, beforeEach, expect, test } from 'vitest'
import { leftoversOf, openTestImages, type TestImages } from '../support/images.ts'
import { type MemoryRegistry, serveRegistry, testImage } from '../support/registry.ts'
import { tar } from '../support/tar.ts'

const greeting = tar([{ name: 'etc' }, { name: 'etc/greeting', content: 'hello' }])

let registry: MemoryRegistry
let lab: TestImages

beforeEach(async () => {
  registry = await serveRegistry()
  lab = await openTestImages({
    registryMirrors: { 'docker.io': registry.address },
    limits: { stallMs: 60_000 },
  })
})

afterEach(async () => {
  await lab.images.close()
  const leftovers = await leftoversOf(lab)
  await lab.close()
  await registry.close()
  expect(leftovers).toEqual([])
})

test('a pull whose unit is destroyed is aborted with its connections to the registry', async () => {
  const image = testImage([greeting])
  registry.add('library/app', '1', image)
  const stalled = Promise.withResolvers<void>()
  const broken = Promise.withResolvers<void>()
  registry.intercept = ({ url }, response) => {
    if (!url?.endsWith(image.blobs[1]?.digest ?? '')) return false
    response.once('close', () => broken.resolve())
    stalled.resolve()
    return true
  }
  const { images } = lab
  const pull = images.pull('docker.io/library/app:1', { id: 'unit_1', teamId: 'team_1', networkGroup: 1 })
  const refused = expect(pull).rejects.toMatchObject({ kind: 'unknown_machine' })
  await stalled.promise
  images.giveUp('unit_2')
  images.giveUp('unit_1')
  await refused
  await broken.promise
})

test('a slow registry does not delay a pull of the same image from another repository', async () => {
  const image = testImage([greeting])
  registry.add('evil/app', '1', image)
  registry.add('library/app', '1', image)
  const stalled = Promise.withResolvers<void>()
  registry.intercept = ({ url }) => {
    if (!url?.startsWith('/v2/evil/app/blobs/')) return false
    stalled.resolve()
    return true
  }
  const { images } = lab
  const evil = images.pull('docker.io/evil/app:1', { id: 'unit_1', teamId: 'team_1', networkGroup: 1 })
  evil.catch(() => {})
  await stalled.promise
  const { digest } = await images.pull('docker.io/library/app:1', {
    id: 'unit_2',
    teamId: 'team_2',
    networkGroup: 2,
  })
  expect(digest).toBe(image.manifest.digest)
  images.giveUp('unit_1')
  await expect(evil).rejects.toMatchObject({ kind: 'unknown_machine' })
})

test('a team with stalled registries does not delay other teams', async () => {
  const asked = new Set<string>()
  const enough = Promise.withResolvers<void>()
  registry.intercept = ({ url = '' }, response) => {
    if (!url.startsWith('/v2/stalled/')) return false
    asked.add(url)
    if (asked.size === 3) enough.resolve()
    // Only the headers are sent.
    response.writeHead(200, { 'content-length': '1000' }).flushHeaders()
    return true
  }
  registry.add('library/app', '1', testImage([greeting]))
  const stalled = Array.from({ length: 20 }, (_, n) => {
    const pull = lab.images.pull(`docker.io/stalled/image-${n}:1`, {
      id: `unit_${n}`,
      teamId: 'team_1',
      networkGroup: 1,
    })
    pull.catch(() => {})
    return pull
  })
  await enough.promise
  await lab.images.pull('docker.io/library/app:1', {
    id: 'unit_of_another',
    teamId: 'team_2',
    networkGroup: 2,
  })
  expect(asked.size).toBe(3)
  for (let n = 0; n < 20; n += 1) lab.images.giveUp(`unit_${n}`)
  for (const pull of stalled) await expect(pull).rejects.toMatchObject({ kind: 'unknown_machine' })
})
