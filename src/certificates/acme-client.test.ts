// An authority that misbehaves: its answers are bounded, and cannot lead the client elsewhere. Tests with a real
// authority are in gateway/certificates/on-demand.test.ts and default.host.test.ts; it refuses three nonces in ten.

import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { systemClock } from '../lib/clock.ts'
import { runOrThrow } from '../lib/process.ts'
import { placeOrder } from './acme-client.ts'

let key: string
let certificate: string
let server: Server | undefined
beforeAll(async () => {
  const made = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    '-',
  ]
  const named = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const pem = await runOrThrow('openssl', [...made, ...named], { timeoutMs: 20_000 })
  certificate = pem.slice(pem.indexOf('-----BEGIN CERTIFICATE'))
  key = pem.slice(0, pem.indexOf('-----BEGIN CERTIFICATE'))
})
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

/** Orders a certificate from an authority with the given answers. */
async function orderAt(answer: RequestListener): Promise<unknown> {
  server = createServer({ key, cert: certificate }, answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const settings = { email: null, ca: certificate, accountKey: key, clock: systemClock }
  return await placeOrder({ ...settings, directory: `https://localhost:${port}/dir` }, ['a.example.com'])
}

const directory = (host: string, path = '') =>
  JSON.stringify({
    newNonce: `https://${host}/nonce${path}`,
    newAccount: `https://${host}/account${path}`,
    newOrder: `https://${host}/order${path}`,
  })

it('the client reports a directory that is not valid ACME', async () => {
  await expect(orderAt((_request, response) => response.end('<html>'))).rejects.toThrow(
    'the answer of the authority is not valid ACME',
  )
})

it('the client sends no request to a URL that is not https', async () => {
  const paths: string[] = []
  const ordered = orderAt((request, response) => {
    paths.push(request.url ?? '')
    response.end(directory(request.headers.host ?? '').replaceAll('https:', 'http:'))
  })
  await expect(ordered).rejects.toThrow('not https')
  expect(paths).toEqual(['/dir'])
})

it('the client does not follow a redirect', async () => {
  const paths: string[] = []
  const ordered = orderAt((request, response) => {
    paths.push(request.url ?? '')
    response.writeHead(302, { location: `https://${request.headers.host}/elsewhere` }).end()
  })
  await expect(ordered).rejects.toThrow('not valid ACME')
  expect(paths).toEqual(['/dir'])
})

it('the client cuts off an answer without end', async () => {
  const ordered = orderAt((_request, response) => {
    const more = () => {
      while (response.writable && response.write(Buffer.alloc(65_536, ' ')));
    }
    response.on('drain', more)
    more()
  })
  await expect(ordered).rejects.toThrow('the answer of the authority is too long')
})

it('the client tries five times at an authority that refuses every nonce', async () => {
  let accounts = 0
  const ordered = orderAt((request, response) => {
    if (request.url === '/dir') return response.end(directory(request.headers.host ?? ''))
    response.setHeader('replay-nonce', 'one')
    if (request.url === '/nonce') return response.end()
    accounts += 1
    response.statusCode = 400
    return response.end(JSON.stringify({ type: 'urn:ietf:params:acme:error:badNonce', detail: 'unknown' }))
  })
  await expect(ordered).rejects.toThrow('unknown urn:ietf:params:acme:error:badNonce')
  expect(accounts).toBe(5)
})

it('the client quotes the refusal of an authority', async () => {
  const ordered = orderAt((request, response) => {
    if (request.url === '/dir') return response.end(directory(request.headers.host ?? ''))
    response.setHeader('replay-nonce', 'one')
    if (request.url === '/nonce') return response.end()
    response.statusCode = 403
    return response.end(JSON.stringify({ type: 'urn:x:rateLimited', detail: 'too many orders' }))
  })
  await expect(ordered).rejects.toThrow('too many orders urn:x:rateLimited')
})
