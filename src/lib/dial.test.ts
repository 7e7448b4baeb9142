import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { AddressRefused, dialPublic, dialThroughProxy } from './dial.ts'

test.each([
  '127.0.0.1',
  '10.1.2.3',
  '172.16.0.1',
  '192.168.1.1',
  '169.254.169.254',
  '100.100.100.200',
  '0.0.0.0',
  '::1',
  '::',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '64:ff9b::a9fe:a9fe',
  '2002:7f00:1::',
  'fc00::1',
  'fe80::1',
  'localhost',
])('reliability S15: dialPublic refuses %s', async (host) => {
  await expect(dialPublic({ host, port: 443 })).rejects.toBeInstanceOf(AddressRefused)
})

test.each([
  [['127.0.0.1', '198.41.0.4']],
  [['198.41.0.4', '127.0.0.1']],
  [['198.41.0.4', '2001:503:ba3e::2:30', '::ffff:10.0.0.1']],
])('reliability S15: dialPublic refuses a name that resolves to %j', async (addresses) => {
  const dialling = dialPublic({ host: 'registry.test', port: 443 }, async () => addresses)
  await expect(dialling).rejects.toBeInstanceOf(AddressRefused)
})

test('dialPublic refuses ports other than 443', async () => {
  await expect(dialPublic({ host: '192.0.2.1', port: 22 })).rejects.toBeInstanceOf(AddressRefused)
})

test('dialThroughProxy tunnels data through the operator’s proxy and refuses private addresses', async () => {
  const heads: string[] = []
  const proxy = createServer((socket) => {
    socket.once('data', (head) => {
      heads.push(head.toString())
      socket.write('HTTP/1.1 200 OK\r\n')
      socket.write('Via: test\r\n\r\n')
      socket.on('data', (data) => socket.end(`echo ${data.toString()}`))
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo
  const upstream = { host: '127.0.0.1', port }

  const socket = await dialThroughProxy(upstream, { host: 'ghcr.io', port: 443 })
  socket.end('hello')
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  expect(Buffer.concat(chunks).toString()).toBe('echo hello')
  expect(heads).toEqual(['CONNECT ghcr.io:443 HTTP/1.1\r\nHost: ghcr.io:443\r\n\r\n'])

  await expect(dialThroughProxy(upstream, { host: '169.254.169.254', port: 443 })).rejects.toBeInstanceOf(
    AddressRefused,
  )
  expect(heads).toHaveLength(1)
  proxy.close()
  await once(proxy, 'close')
})

test('dialThroughProxy throws when the proxy refuses or does not speak HTTP', async () => {
  for (const answer of ['HTTP/1.1 403 Forbidden\r\n\r\n', 'SSH-2.0-x\r\n\r\n', 'x'.repeat(20_000), '']) {
    const proxy = createServer((socket) => {
      socket.on('error', () => {}).resume()
      socket.end(answer)
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const { port } = proxy.address() as AddressInfo
    await expect(
      dialThroughProxy({ host: '127.0.0.1', port }, { host: 'ghcr.io', port: 443 }),
    ).rejects.toThrow('proxy')
    proxy.close()
    await once(proxy, 'close')
  }
})
