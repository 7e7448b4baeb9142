// How far a pull is, with the real skopeo and a registry that sends the second half of a layer when the first was told of.

import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { PullProgress } from '../../src/engine/engine.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import { openTestImages, type TestImages } from '../support/images.ts'
import { type MemoryRegistry, serveRegistry, testImage } from '../support/registry.ts'
import { tar } from '../support/tar.ts'

let registry: MemoryRegistry
let lab: TestImages

beforeEach(async () => {
  registry = await serveRegistry()
  const registryMirrors = { 'docker.io': registry.address }
  lab = await openTestImages({ registryMirrors, limits: { stallMs: MINUTE } })
})
afterEach(async () => {
  await lab.close()
  await registry.close()
})

test('a watcher of pulls is told of the machine that waits, and how much of its image has arrived', async () => {
  const image = testImage([tar([{ name: 'big', content: randomBytes(2_000_000) }])])
  registry.add('library/app', '1', image)
  const rest = Promise.withResolvers<void>()
  registry.intercept = ({ url }, response) => {
    const layer = image.blobs[1]
    if (!layer || !url?.endsWith(layer.digest)) return false
    response.writeHead(200, { 'Content-Length': layer.size })
    response.write(layer.content.subarray(0, 1_000_000))
    void rest.promise.then(() => response.end(layer.content.subarray(1_000_000)))
    return true
  }
  const { images } = lab
  const left = new AbortController()
  const told: PullProgress[][] = []
  const watching = images.watchPulls((pulls) => {
    told.push(pulls)
    if ((pulls[0]?.bytes?.done ?? 0) >= 1_000_000) rest.resolve()
  }, left.signal)
  const waiter = { id: 'unit_waits', teamId: 'team_1', networkGroup: 1 }
  await images.pull('docker.io/library/app:1', waiter)
  await expect.poll(() => told.at(-1)).toEqual([])
  left.abort()
  await watching
  expect(told.flat().every(({ machines }) => machines.join() === 'unit_waits')).toBe(true)
  const total = image.blobs.reduce((sum, { size }) => sum + size, 0)
  const downloads = told
    .flat()
    .flatMap(({ stage, bytes }) => (stage === 'downloading' && bytes ? [bytes] : []))
  expect(downloads.every((bytes) => bytes.total === total && bytes.done <= total)).toBe(true)
  const before = told.length
  await images.pull('docker.io/library/app:1', waiter)
  expect(told).toHaveLength(before)
})
