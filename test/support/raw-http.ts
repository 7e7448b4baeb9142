// HTTP as bytes, for what a well-behaved client cannot send.

import { connect } from 'node:net'

/** Sends bytes as they are; answers everything that comes back until the other side closes. */
export async function sendRaw(port: number, bytes: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.setTimeout(5000, () => socket.destroy(new Error('no answer within 5 s')))
  socket.write(bytes)
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks).toString('latin1')
}
