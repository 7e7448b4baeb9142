// Visits to units, and the resolver machines ask for names.

import { once } from 'node:events'
import { createGateway } from '../gateway/server.ts'
import type { Role } from './role.ts'

export const gatewayRole: Role = async ({ config }) => {
  const gateway = createGateway()
  gateway.listen(config.gatewayHttp.port, config.gatewayHttp.host)
  await once(gateway, 'listening')
  return {
    stop: async () => {
      gateway.closeAllConnections()
      await new Promise((resolve) => gateway.close(resolve))
    },
  }
}
