// Runs in the fetch jail: `fetch.ts COMMAND ARG…` runs the command, whose only network is a proxy. The proxy listens
// on a unix socket outside; HTTP clients cannot use that, so this forwards connections to it.

import { spawn } from 'node:child_process'
import { connect, createServer } from 'node:net'

const PORT = 3128
const PROXY_SOCKET = '/berth/proxy.sock'

const relay = createServer({ allowHalfOpen: true }, (client) => {
  const proxy = connect({ path: PROXY_SOCKET, allowHalfOpen: true })
  client.on('error', () => proxy.destroy())
  proxy.on('error', () => client.destroy())
  client.on('close', () => proxy.destroy())
  proxy.on('close', () => client.destroy())
  client.pipe(proxy)
  proxy.pipe(client)
})

relay.listen(PORT, '127.0.0.1', () => {
  const [command = '', ...args] = process.argv.slice(2)
  const proxy = `http://127.0.0.1:${PORT}`
  const env = { PATH: '/usr/bin', HOME: '/tmp', HTTP_PROXY: proxy, HTTPS_PROXY: proxy }
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'], env })
  child.on('error', () => process.exit(127))
  child.on('close', (code) => process.exit(code ?? 1))
})
