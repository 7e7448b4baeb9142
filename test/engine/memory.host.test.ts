// Memory that outlives a run (reliability F10, F12, F13, I22): that it goes on, and that nothing is lost where it cannot.

import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { memoryClaims } from './claims/memory.ts'
import { IMAGE, openHostEngine } from './host-engine.ts'
import { createSuite } from './suite.ts'

let host: Awaited<ReturnType<typeof openHostEngine>>
const suite = createSuite(
  async () => ({
    engine: host.engine(),
    configuredImage: '',
    reopen: host.reopen,
    close: async () => await host.close(),
  }),
  { isolation: 'runc', image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
)

beforeAll(async () => {
  host = await openHostEngine({ isolation: 'runc' })
  await suite.open()
})
afterEach(async () => await host.expectAsListed())
afterAll(async () => await suite.close())

describe('memory', () => memoryClaims(suite))
