// What Berth relies on in an API server, of a real one whose watches end all the time.

import { describeApi } from '../../test/support/kubernetes/api-contract.ts'
import { startControlPlane } from '../../test/support/kubernetes/control-plane.ts'

describeApi('a real API server', async () => {
  const real = await startControlPlane({ flags: ['--min-request-timeout=5'] })
  // It remembers nothing from before it started.
  return { access: real.access, compact: async () => {}, close: async () => await real.close() }
})
