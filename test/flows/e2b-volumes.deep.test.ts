// Volumes of clients of E2B, by the official client, on a real unit that sleeps between two calls.

import { Volume, VolumePathNotFoundError } from 'e2b'
import { beforeAll, expect, it } from 'vitest'
import { connectionTo, createSandbox } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
let volume: Volume
beforeAll(async () => {
  // The first unit of an image is refused until the image is built.
  await (await createSandbox(berth)).kill()
  volume = await Volume.create('my-volume', connectionTo(berth))
})

const at = () => ({ apiUrl: connectionTo(berth).apiUrl })

it('files of a volume are written, read in every format, changed and removed', async () => {
  expect(await volume.list('/', at())).toEqual([])
  expect(await volume.writeFile('/notes/today.txt', 'hello', at())).toMatchObject({
    name: 'today.txt',
    path: '/notes/today.txt',
    type: 'file',
    size: 5,
    mode: 0o644,
  })
  await volume.writeFile('/notes/today.txt', new Blob(['bytes']).stream(), at())
  expect(await volume.readFile('/notes/today.txt', at())).toBe('bytes')
  const bytes = await volume.readFile('/notes/today.txt', { ...at(), format: 'bytes' })
  expect(new TextDecoder().decode(bytes)).toBe('bytes')
  let read = 0
  const stream = await volume.readFile('/notes/today.txt', { ...at(), format: 'stream' })
  for await (const piece of stream) read += piece.length
  expect(read).toBe(5)
  const owned = { uid: 1234, gid: 4321, mode: 0o600 }
  expect(await volume.updateMetadata('/notes/today.txt', owned, at())).toMatchObject(owned)
  const entry = await volume.getInfo('/notes/today.txt', at())
  expect(entry).toMatchObject(owned)
  expect(Date.now() - entry.mtime.getTime()).toBeLessThan(600_000)
  await volume.remove('/notes/today.txt', at())
  expect(await volume.exists('/notes/today.txt', at())).toBe(false)
})

it('directories of a volume are made, listed to a depth, and removed with what is in them', async () => {
  await expect(volume.makeDir('/a/b', at())).rejects.toThrow(VolumePathNotFoundError)
  expect(await volume.makeDir('/a', { ...at(), mode: 0o700 })).toMatchObject({
    type: 'directory',
    mode: 0o700,
  })
  await expect(volume.makeDir('/a', at())).rejects.toThrow(/exists already/)
  await volume.makeDir('/a/b/c', { ...at(), force: true })
  const pathsOf = async (depth: number) =>
    (await volume.list('/a', { ...at(), depth })).map(({ path }) => path)
  expect(await pathsOf(1)).toEqual(['/a/b'])
  expect(await pathsOf(2)).toEqual(['/a/b', '/a/b/c'])
  await volume.remove('/a', at())
  await expect(volume.list('/a', at())).rejects.toThrow(VolumePathNotFoundError)
  await expect(volume.readFile('/a/b', at())).rejects.toThrow(VolumePathNotFoundError)
  await expect(volume.updateMetadata('/a', { mode: 0o700 }, at())).rejects.toThrow(VolumePathNotFoundError)
})

it('a volume has its files when it was asleep, and no path leads out of it', async () => {
  await volume.writeFile('/kept', 'kept', at())
  const unit = `/v1/units/unit_${volume.volumeId}`
  expect((await berth.call('POST', `${unit}/sleep`, { sleep: '5m', now: true })).status).toBe(200)
  expect(await volume.readFile('/kept', at())).toBe('kept')
  await expect(volume.readFile('/../../etc/hostname', at())).rejects.toThrow(VolumePathNotFoundError)
  const known = await Volume.connect(volume.volumeId, connectionTo(berth))
  expect(await known.readFile('kept', at())).toBe('kept')
  expect((await Volume.list(connectionTo(berth))).map(({ name }) => name)).toEqual(['my-volume'])
  expect((await Volume.getInfo(volume.volumeId, connectionTo(berth))).token).toBe(volume.token)
  expect(await Volume.destroy(volume.volumeId, connectionTo(berth))).toBe(true)
})
