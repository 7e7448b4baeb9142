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

describe('loadRuleset', () => {
  test('returns null when the rules cannot be listed', async () => {
    expect(
      await loadRuleset(
        () => generation,
        load,
        async () => null,
      ),
    ).toBe(null)
  })

  test('returns the listed rules and their generation when nothing else changed them', async () => {
    expect(await loadRuleset(() => generation, load, list)).toEqual({ generation: 42, rules: 'ours' })
  })

  test('returns null when another program changed the rules before they were listed', async () => {
    const disturbed = async () => {
      change('ours, and theirs')
      return await list()
    }
    expect(await loadRuleset(() => generation, load, disturbed)).toBe(null)
  })

  test('returns null when another program changed the rules during the load or the listing', async () => {
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
