// What Berth relies on in an API server, of a real one whose watches end all the time.

import { describeApi } from '../../test/support/kubernetes/api-contract.ts'
import { startControlPlane } from '../../test/support/kubernetes/control-plane.ts'

describeApi('a real API server', async () => {
  const real = await startControlPlane({ flags: ['--min-request-timeout=5'] })
  const compact = async () => {
    // It remembers nothing from before it started.
    await real.stopApi()
    await real.startApi()
  }
  return { access: real.access, compact, close: async () => await real.close() }
})
