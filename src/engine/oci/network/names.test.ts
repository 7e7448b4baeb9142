import { expect, test } from 'vitest'
import { namesOf } from './names.ts'

test('namesOf includes the instance in each name and keeps interface names within 15 characters', () => {
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
])('namesOf throws for $id with $subnet instead of putting it into a rule', (instance) => {
  expect(() => namesOf(instance)).toThrow()
})
