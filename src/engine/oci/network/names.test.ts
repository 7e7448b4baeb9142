import { expect, test } from 'vitest'
import { namesOf } from './names.ts'

test('names carry the instance and fit an interface', () => {
  const names = namesOf({ id: 'a1b2', subnet: '10.9.0.0/16' })
  expect(names).toMatchObject({ table: 'berth_a1b2', namespacePrefix: 'berth-a1b2-', gateway: '10.9.0.1' })
  expect(`${names.interfacePrefix}999999999`.length).toBeLessThanOrEqual(15)
})

test.each([
  { id: 'a1b', subnet: '10.9.0.0/16' },
  { id: 'a1-2', subnet: '10.9.0.0/16' },
  { id: 'a1b2', subnet: '10.9.0.0/24' },
  { id: 'a1b2', subnet: '192.168.0.0/16' },
  { id: 'a1b2', subnet: '10.9.0.0/16; flush ruleset' },
])('$id with $subnet is refused, not put into a rule', (instance) => {
  expect(() => namesOf(instance)).toThrow()
})
