// Runs inside a network namespace: `serve host:port…` answers TCP and UDP there with the caller's address;
// `reach tcp://host:port?from=source…` prints which of the targets answered, and what.

import { createSocket } from 'node:dgram'
import { connect, createServer } from 'node:net'

const [mode, ...args] = process.argv.slice(2)
const TRY_MS = 1200

if (mode === 'serve') {
  await Promise.all(args.map((where) => serve(new URL(`tcp://${where}`))))
  process.stdout.write('ready\n')
} else {
  const answers = await Promise.all(args.map((target) => reach(new URL(target))))
  process.stdout.write(JSON.stringify(answers))
  process.exit(0)
}

async function serve({ hostname, port }: URL): Promise<void> {
  const tcp = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(`${socket.remoteAddress}`)
  })
  await new Promise<void>((resolve) => tcp.listen(Number(port), hostname, resolve))
  const udp = createSocket('udp4')
  udp.on('message', (_bytes, peer) => udp.send(peer.address, peer.port, peer.address))
  await new Promise<void>((resolve) => udp.bind(Number(port), hostname, resolve))
}

/** What was answered, or null. */
function reach({ protocol, hostname, port, searchParams }: URL): Promise<string | null> {
  const from = searchParams.get('from')
  return new Promise((resolve) => {
    setTimeout(() => resolve(null), TRY_MS)
    if (protocol === 'tcp:') {
      const socket = connect({ host: hostname, port: Number(port), ...(from ? { localAddress: from } : {}) })
      socket.on('error', () => resolve(null)).on('data', (data) => resolve(String(data)))
      return
    }
    const socket = createSocket('udp4')
    socket.on('error', () => resolve(null)).on('message', (data) => resolve(String(data)))
    const send = () => socket.send('?', Number(port), hostname, () => {})
    if (from) socket.bind(0, from, send)
    else send()
  })
}
