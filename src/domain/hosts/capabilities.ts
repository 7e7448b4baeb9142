// Asks the engine of each host what it can do. Where the answer is only shown, the last one is used.

import type { App } from '../../app.ts'
import type { Capabilities } from '../../engine/engine.ts'
import type { FleetHost } from '../../engine/fleet.ts'

export async function learnCapabilities(app: App, host: FleetHost): Promise<Capabilities> {
  const capabilities = await host.engine.capabilities()
  app.capabilities.set(host.id, capabilities)
  return capabilities
}
