import { beforeEach, describe, expect, test } from 'vitest'
import { loadRuleset } from './expected-ruleset.ts'

let generation: number
let rules: string

beforeEach(() => {
  generation = 41
  rules = 'nobody’s'
})

const change = (to: string) => {
  generation += 1
  rules = to
}
const load = async () => change('ours')
const list = async () => rules

describe('what is listed after a load', () => {
  test('is nothing to rely on when nothing is listed', async () => {
    expect(
      await loadRuleset(
        () => generation,
        load,
        async () => null,
      ),
    ).toBe(null)
  })

  test('is ours when nobody else changed anything', async () => {
    expect(await loadRuleset(() => generation, load, list)).toEqual({ generation: 42, rules: 'ours' })
  })

  test('is nobody’s to rely on when somebody did before it was listed', async () => {
    const disturbed = async () => {
      change('ours, and theirs')
      return await list()
    }
    expect(await loadRuleset(() => generation, load, disturbed)).toBe(null)
  })

  test('nor when somebody did while it was listed, or while it was loaded', async () => {
    const listedBefore = async () => {
      const found = rules
      change('ours, and theirs')
      return found
    }
    expect(await loadRuleset(() => generation, load, listedBefore)).toBe(null)
    const overtaken = async () => {
      await load()
      change('theirs')
    }
    expect(await loadRuleset(() => generation, overtaken, list)).toBe(null)
  })
})
