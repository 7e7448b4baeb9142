// What the engine of each host can do. It is asked when it matters, and its last answer is kept for what is only shown.

import type { App } from '../../app.ts'
import type { Capabilities } from '../../engine/engine.ts'
import type { FleetHost } from '../../engine/fleet.ts'

export async function learnCapabilities(app: App, host: FleetHost): Promise<Capabilities> {
  const capabilities = await host.engine.capabilities()
  app.capabilities.set(host.id, capabilities)
  return capabilities
}
