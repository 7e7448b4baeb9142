// The official client of another interface, pointed at a Berth of the test.

import { Sandbox, type SandboxOpts } from 'e2b'
import type { Berth } from './berth.ts'

/** What its users set by E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY. */
export function connectionTo(berth: Berth): { apiKey: string; apiUrl: string; sandboxUrl: string } {
  const { baseUrl, apiKey } = berth.credentials
  return { apiKey, apiUrl: `${baseUrl}/e2b`, sandboxUrl: `${baseUrl}/e2b/sandbox` }
}

/** The first sandbox of an image is refused until the image is built. */
export async function createSandbox(berth: Berth, options: SandboxOpts = {}): Promise<Sandbox> {
  for (;;) {
    try {
      return await Sandbox.create({ requestTimeoutMs: 600_000, ...connectionTo(berth), ...options })
    } catch (error) {
      if (!String(error).includes('is not on this host yet')) throw error
    }
  }
}
