// As many contexts for code in one unit as its memory takes, at once.

import { beforeAll, describe, expect, it } from 'vitest'
import { Berth as Client, type Unit } from '../../packages/sdk/src/index.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth(null)
const CONTEXTS = 50
const minutes = (count: number) => count * 60_000

describe.each(['gvisor', 'runc'] as const)('with %s, many contexts of one unit', (isolation) => {
  let unit: Unit
  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
    const { baseUrl, apiKey } = berth.credentials
    const client = new Client({ url: baseUrl, apiKey })
    const image = 'berth.local/code:1'
    unit = await client.units.create({ image, size: 'medium', waitTimeoutMs: minutes(10) })
  }, minutes(12))

  it('have each its own variables and output', { timeout: minutes(10) }, async () => {
    const timeoutMs = minutes(4)
    const contexts = await Promise.all(
      Array.from({ length: CONTEXTS }, async () => await unit.code.createContext({}, { timeoutMs })),
    )
    const all = async (code: (index: number) => string) =>
      await Promise.all(
        contexts.map(async (context, index) => await unit.code.run(code(index), { context, timeoutMs })),
      )
    await all((index) => `own = ${index}`)
    const said = await all(() => 'for _ in range(200): print(own)\nown')
    expect(said.map(({ text }) => text)).toEqual(contexts.map((_, index) => String(index)))
    for (const [index, { stdout }] of said.entries()) expect(stdout).toBe(`${index}\n`.repeat(200))
  })
})
