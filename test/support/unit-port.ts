// A server at every port of every unit, for services without a gateway: it answers each request with its first line.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { App } from '../../src/app.ts'

export async function startUnitPort(): Promise<{ reachPort: App['reachPort']; close(): void }> {
  const server = createServer((asked, response) => response.end(`${asked.method} ${asked.url}`))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    reachPort: async () => connect(port, '127.0.0.1'),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
