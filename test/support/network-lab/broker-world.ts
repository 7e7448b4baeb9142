// Hosts with secrets in the internet of a lab: a nameserver by which every name leads to one address, and HTTPS there. Its
// certificate names the hosts that it is told, by an authority of the test's own. What it was sent, it tells its parent.

import { createSocket } from 'node:dgram'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { decode, encode } from 'dns-packet'
import { makeKey, toPem } from '../../../src/certificates/signed.ts'
import { answerOf } from './registries.ts'
import { authorityCertificate, hostCertificate } from '../../../src/certificates/team-authority.ts'

export type BrokerWorld = { nameserver: string; address: string; certified: string[] }
/** What a host was sent in one request. */
export type Sent = { host: string; url: string; key: string; authorization: string; body: string }

const { nameserver, address, certified } = JSON.parse(process.argv[2] ?? '') as BrokerWorld
const names = createSocket('udp4')
names.on('message', (bytes, from) => {
  const query = decode(bytes)
  const question = query.questions?.[0]
  if (!question) return
  const isKnown = question.type === 'A' && question.name.endsWith('.example.com')
  const answers = isKnown ? [{ type: 'A' as const, name: question.name, ttl: 60, data: address }] : []
  const answer = encode({ type: 'response', id: query.id ?? 0, flags: 0x180, questions: [question], answers })
  names.send(answer, from.port, from.address)
})
await new Promise<void>((resolve) => names.bind(53, nameserver, resolve))

const [rootKey, key] = await Promise.all([makeKey(), makeKey()])
const root = { name: 'Lab root', key: rootKey }
const now = new Date()
const certificates = new Map(certified.map((name) => [name, hostCertificate(name, key, root, now)]))
const https = createServer({ key: toPem(key), cert: certificates.get(certified[0] ?? '') })
for (const [name, cert] of certificates) https.addContext(name, { key: toPem(key), cert })
https.on('request', (request, response) => {
  const body: Buffer[] = []
  request.on('data', (chunk: Buffer) => body.push(chunk))
  request.on('end', () => {
    const { host = '', authorization = '', 'x-key': header = '' } = request.headers
    const text = Buffer.concat(body).toString()
    const sent: Sent = { host, url: request.url ?? '', key: String(header), authorization, body: text }
    process.send?.({ sent })
    if (request.url === '/give') return give(response)
    const answer = answerOf(sent.url, request.headers.authorization)
    if (answer) return void response.writeHead(answer.status, answer.headers).end(answer.body)
    response.end(`hello from ${host}\n`)
  })
})
await new Promise<void>((resolve) => https.listen(443, address, () => resolve()))
process.on('disconnect', () => process.exit(0))
process.send?.({ roots: authorityCertificate(root.name, { key: rootKey, now }) })

/** 256 MB, for a measurement. */
function give(response: ServerResponse): void {
  const block = Buffer.alloc(256 * 1024)
  let left = 1024
  const more = () => {
    while (left > 0) {
      left -= 1
      if (!response.write(block)) return void response.once('drain', more)
    }
    response.end()
  }
  more()
}
