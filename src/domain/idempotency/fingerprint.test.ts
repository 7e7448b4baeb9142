import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { asksTheSame, fingerprint } from './fingerprint.ts'

/** A call with this body, as a version of the server with this schema reads it. */
function callWith(body: string, schema: z.ZodType, params: object = {}, query: object = {}) {
  const input = { params, query, body: schema.parse(JSON.parse(body)) }
  return fingerprint(input, { params, query, body: Buffer.from(body) })
}

const today = z.object({
  name: z.string(),
  size: z.string().default('small'),
  tags: z.array(z.string()).default([]),
})
const tomorrow = today.extend({ region: z.string().default('paris') })

describe('a repeated Idempotency-Key is the same request', () => {
  const first = callWith('{"name":"a","size":"small"}', today)

  test.each([
    '{"size":"small","name":"a"}',
    '{ "name" : "a" }',
    '{"name":"a","tags":[]}',
    '{"n\\u0061me":"a"}',
  ])('when the body means the same, as %s does', (body) => {
    expect(asksTheSame(callWith(body, today), first)).toBe(true)
  })

  test('when the same bytes were sent, though a newer server adds a default', () => {
    expect(asksTheSame(callWith('{"name":"a","size":"small"}', tomorrow), first)).toBe(true)
  })

  test.each(['{"name":"b","size":"small"}', '{"name":"a","size":"nano"}', '{"name":"a","tags":["x"]}'])(
    'only when the body means the same, which %s does not',
    (body) => {
      expect(asksTheSame(callWith(body, today), first)).toBe(false)
    },
  )

  test('only when path and query are the same', () => {
    const body = '{"name":"a"}'
    const about = callWith(body, today, { id: 'one' }, { all: 'true' })
    expect(asksTheSame(callWith(body, today, { id: 'one' }, { all: 'true' }), about)).toBe(true)
    expect(asksTheSame(callWith(body, today, { id: 'two' }, { all: 'true' }), about)).toBe(false)
    expect(asksTheSame(callWith(body, today, { id: 'one' }), about)).toBe(false)
  })
})
