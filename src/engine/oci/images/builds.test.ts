import { afterEach, beforeEach, expect, it } from 'vitest'
import { boat, type BuiltImages, openBuiltImages } from '../../../../test/support/built-images.ts'
import { plainSystem } from './builtin-images.ts'

const ferry = { ...boat, name: 'ferry', packages: [...plainSystem.packages, 'boat'] }

let images: BuiltImages
beforeEach(async () => {
  images = await openBuiltImages()
})
afterEach(async () => {
  await images.close()
})

const lastSystem = () => images.debian.plainSystem

it('An image that contains the plain system is built on it, if it is here', async () => {
  const before = await images.build(ferry)
  expect(lastSystem()).toBeNull()
  const system = await images.store.find(await images.build(plainSystem))
  expect(lastSystem()).toBeNull()
  images.debian.version = '2.0'
  await images.build(ferry, before)
  expect(lastSystem()).toBe(system?.rootfs)
})

it('An image that contains only a part of the plain system is built without it', async () => {
  await images.build(plainSystem)
  await images.build({ ...boat, packages: ['curl', 'boat', 'raft'] })
  expect(lastSystem()).toBeNull()
})
