// A door on loopback between a vendor's forwarder and the unit of its environment. Connections pass as they are; of each message to
// the unit it is told what is called.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Relay, RelayCall } from './relay.ts'

export type Door = {
  /** Where the forwarder connects; another program of this machine does not know its path. */
  url: string
  close: () => Promise<void>
}

type Callers = Pick<Relay, 'callIn'> & {
  /** Is told of each call. */
  onCall: (call: RelayCall) => void
}

/** @param target The unit's private address, `ws:` or `wss:`. */
export async function openDoor(target: string, callers: Callers): Promise<Door> {
  const path = `/${randomUUID()}`
  const open = new Set<Duplex>()
  const keep = (socket: Duplex) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket)).on('error', () => socket.destroy())
  }
  const server = createServer((_, response) => response.writeHead(404).end())
  server.on('upgrade', (request, socket: Duplex, head: Buffer) => {
    keep(socket)
    if (request.url !== path) return socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n')
    const outgoing = reach(target, request)
    outgoing.on('error', () => socket.destroy())
    socket.once('close', () => outgoing.destroy())
    outgoing.on('response', ({ statusCode }) =>
      socket.end(`HTTP/1.1 ${statusCode ?? 502} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`),
    )
    outgoing.on('upgrade', (answer, far, farHead) => {
      keep(far)
      const listen = listener(callers)
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headersOf(answer)}\r\n`)
      socket.write(farHead)
      socket.on('data', listen)
      if (head.length > 0) {
        listen(head)
        far.write(head)
      }
      socket.pipe(far).pipe(socket)
      socket.once('close', () => far.destroy())
      far.once('close', () => socket.destroy())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    close: async () => {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Without extensions: what is compressed could not be read. */
function reach(target: string, { headers }: IncomingMessage) {
  const { protocol } = new URL(target)
  const { host: _, 'sec-websocket-extensions': __, ...passed } = headers
  const options = { headers: passed }
  const url = target.replace(/^ws/, 'http')
  const outgoing = protocol === 'wss:' ? httpsRequest(url, options) : httpRequest(url, options)
  return outgoing.end()
}

function headersOf({ rawHeaders }: IncomingMessage): string {
  let text = ''
  for (let at = 0; at < rawHeaders.length; at += 2) text += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`
  return text
}

/** Of a message: more than any command is long, and less than a file may be. */
const KEPT_BYTES = 262_144

type Frame = { at: number; bytes: number; mask: Buffer; isData: boolean; isLast: boolean }

/** Reads the frames of a client (RFC 6455, 5.2), piece by piece. */
function listener({ callIn, onCall }: Callers): (piece: Buffer) => void {
  let pending: Buffer = Buffer.alloc(0)
  let frame: Frame | null = null
  let message: Buffer[] = []
  let kept = 0
  return (piece) => {
    pending = pending.length === 0 ? piece : Buffer.concat([pending, piece])
    for (;;) {
      if (!frame) {
        const begun = frameOf(pending)
        if (!begun) return
        frame = begun.frame
        pending = pending.subarray(begun.headBytes)
      }
      const taken = pending.subarray(0, frame.bytes - frame.at)
      pending = pending.subarray(taken.length)
      if (frame.isData && kept < KEPT_BYTES) {
        const part = unmasked(taken.subarray(0, KEPT_BYTES - kept), frame)
        message.push(part)
        kept += part.length
      }
      frame.at += taken.length
      if (frame.at < frame.bytes) return
      if (frame.isData && frame.isLast) {
        const call = callIn(Buffer.concat(message).toString())
        if (call) onCall(call)
        message = []
        kept = 0
      }
      frame = null
    }
  }
}

/** Null while its head is not there whole. */
function frameOf(bytes: Buffer): { frame: Frame; headBytes: number } | null {
  const [first = 0, second = 0] = bytes
  const short = second & 127
  const extended = short === 126 ? 2 : short === 127 ? 8 : 0
  const headBytes = 2 + extended + 4
  if (bytes.length < headBytes) return null
  const length =
    extended === 0 ? short : extended === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  const isData = (first & 15) <= 2
  const mask = bytes.subarray(headBytes - 4, headBytes)
  return { headBytes, frame: { at: 0, bytes: length, isData, isLast: first >= 128, mask } }
}

function unmasked(bytes: Buffer, { mask, at }: Frame): Buffer {
  return Buffer.from(bytes.map((byte, index) => byte ^ (mask[(at + index) % 4] ?? 0)))
}
