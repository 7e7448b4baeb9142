// A service at its public URL: metadata and redirects name that, and clients that follow them must get there. The address is
// known before the service is, and its connections are passed on.

import { connect, createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { type Service, type ServiceOptions, startService } from './service.ts'

export async function startAtPublicUrl(options: ServiceOptions = {}): Promise<Service> {
  const sockets = new Set<Socket>()
  let port = 0
  const front = createServer((incoming) => {
    const passed = connect(port, '127.0.0.1')
    for (const [socket, other] of [
      [incoming, passed],
      [passed, incoming],
    ] as const) {
      sockets.add(socket)
      socket.pipe(other)
      socket.once('error', () => other.destroy())
      socket.once('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  const publicUrl = `http://127.0.0.1:${(front.address() as AddressInfo).port}`
  const service = await startService({ ...options, publicUrl })
  port = service.port
  return {
    ...service,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => front.close(resolve))
      await service.close()
    },
  }
}
