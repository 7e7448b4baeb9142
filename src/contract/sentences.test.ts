import { expect, it } from 'vitest'
import { z } from 'zod'
import { parse } from './parse.ts'

const schema = z.object({
  name: z.string().optional(),
  size: z.enum(['small', 'large']).optional(),
  count: z.int().min(1).max(9).optional(),
  tags: z.array(z.string()).max(2).optional(),
  cmd: z.union([z.string(), z.array(z.string())]).optional(),
  own: z.string().min(3, 'must be longer').optional(),
})

const messageOf = (act: () => unknown) => {
  try {
    act()
  } catch (error) {
    return (error as Error).message
  }
}

it.each([
  [{ name: 5 }, 'name: must be a text, not 5'],
  [{ name: ['a secret'] }, 'name: must be a text, not a list'],
  [{ size: 'huge' }, 'size: must be one of "small", "large"'],
  [{ size: 'x'.repeat(99) }, 'size: must be one of "small", "large"'],
  [{ count: 0 }, 'count: must be at least 1, not 0'],
  [{ count: 10 }, 'count: must be at most 9, not 10'],
  [{ count: 'many' }, 'count: must be a number, not a text'],
  [{ tags: ['a', 'b', 'c'] }, 'tags: must have at most 2 entries, not 3'],
  [{ cmd: 5 }, 'cmd: must be a text or a list, not 5'],
  [{ own: 'a' }, 'own: must be longer'],
])('the value %j is refused with: %s', (value, message) => {
  expect(messageOf(() => parse(schema, value))).toBe(message)
})

it('a field that is missing is refused as missing', () => {
  expect(messageOf(() => parse(z.object({ unit: z.string() }), {}))).toBe(
    'unit: is missing: it must be a text',
  )
})
