import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { freePort, isPortTaken, tryListening } from './free-port.ts'

it('freePort returns a free port outside the range of outgoing connections', async () => {
  const port = await freePort('127.0.0.1')
  const outgoing = createServer().listen(0, '127.0.0.1')
  await once(outgoing, 'listening')
  expect(port).toBeLessThan(32_768)
  expect((outgoing.address() as AddressInfo).port).toBeGreaterThanOrEqual(32_768)
  outgoing.close()
  await expect(tryListening('127.0.0.1', port)).resolves.toBeUndefined()
})

it('concurrent calls of freePort return different ports', async () => {
  const ports = await Promise.all(Array.from({ length: 20 }, () => freePort('127.0.0.1')))
  expect(new Set(ports).size).toBe(20)
})

it('isPortTaken distinguishes a port in use from an address that does not exist', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const taken = tryListening('127.0.0.1', (other.address() as AddressInfo).port).catch(isPortTaken)
  expect(await taken).toBe(true)
  other.close()
  expect(await tryListening('203.0.113.9', 7070).catch(isPortTaken)).toBe(false)
})
