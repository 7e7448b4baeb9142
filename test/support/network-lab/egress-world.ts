// The internet of a lab as restricted machines see it: a nameserver that writes down what it is asked, and a host with
// every name on ports 80, 443, 22 and, by UDP, 443.

import { createSocket } from 'node:dgram'
import { createServer as createHttp } from 'node:http'
import { createServer as createTcp } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { decode, encode } from 'dns-packet'

const { nameserver, address, addresses, key, cert } = JSON.parse(process.argv[2] ?? '') as {
  nameserver: string
  address: string
  /** Names that lead elsewhere. */
  addresses: Record<string, string>
  key: string
  cert: string
}
const asked: string[] = []

const names = createSocket('udp4')
names.on('message', (bytes, from) => {
  const query = decode(bytes)
  const question = query.questions?.[0]
  if (!question) return
  asked.push(`${question.type} ${question.name}`)
  const data = addresses[question.name] ?? address
  const isKnown = question.type === 'A' && question.name.endsWith('.example.com')
  const answers = isKnown ? [{ type: 'A' as const, name: question.name, ttl: 60, data }] : []
  const answer = encode({ type: 'response', id: query.id ?? 0, flags: 0x180, questions: [question], answers })
  names.send(answer, from.port, from.address)
})
await new Promise<void>((resolve) => names.bind(53, nameserver, resolve))

const http = createHttp((request, response) => {
  const body: Buffer[] = []
  request.on('data', (chunk: Buffer) => body.push(chunk))
  request.on('end', () =>
    response.end(`${request.method} ${request.headers.host} ${Buffer.concat(body).toString()}`),
  )
})
const tls = createTls({ key, cert }, (socket) => {
  socket.on('error', () => {})
  socket.write(`hello ${socket.servername || 'nobody'}\n`)
  socket.on('data', (chunk: Buffer) => {
    const [, size] = /^give (\d+)\n/.exec(chunk.toString('latin1')) ?? []
    if (size === undefined) socket.write(chunk)
    else
      give(
        Number(size),
        (block) => socket.write(block),
        (next) => socket.once('drain', next),
        () => socket.end(),
      )
  })
})
const echo = createTcp((socket) => {
  socket.on('error', () => {})
  socket.write('hello\n')
  socket.pipe(socket)
})
for (const [server, port] of [
  [http, 80],
  [tls, 443],
  [echo, 22],
  [echo, 23],
] as const) {
  const listener = server === echo && port === 23 ? createTcp((socket) => socket.end('hello\n')) : server
  await new Promise<void>((resolve) => listener.listen(port, address, () => resolve()))
}
const quic = createSocket('udp4')
quic.on('message', (bytes, from) => quic.send(bytes, from.port, from.address))
await new Promise<void>((resolve) => quic.bind(443, address, resolve))

function give(
  size: number,
  write: (block: Buffer) => boolean,
  drained: (next: () => void) => void,
  done: () => void,
) {
  const block = Buffer.alloc(256 * 1024)
  let left = size
  const more = () => {
    while (left > 0) {
      left -= block.length
      if (!write(block)) return drained(more)
    }
    done()
  }
  more()
}

process.on('message', () => process.send?.(asked.splice(0)))
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
