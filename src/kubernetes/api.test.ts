// The API of Kubernetes as the fake server has it; api.deep.test.ts runs the same against a real one.

import { describeApi } from '../../test/support/kubernetes/api-contract.ts'
import { startFakeApiServer } from '../../test/support/kubernetes/fake-api-server.ts'

describeApi('the fake API server', async () => {
  const fake = await startFakeApiServer()
  return { access: fake.access, compact: async () => fake.compact(), close: async () => await fake.close() }
})
