import { expect, it } from 'vitest'
import { describeError } from './log.ts'

it('describeError returns the type, message, code, cause and stack frames of an error', () => {
  const refused = Object.assign(new TypeError('no'), { code: 'ECONNREFUSED', syscall: 'connect' })
  const described = describeError(new Error('not reached', { cause: refused }))
  expect(described).toMatchObject({
    type: 'Error',
    message: 'not reached',
    cause: { type: 'TypeError', message: 'no', code: 'ECONNREFUSED', syscall: 'connect' },
  })
  expect(described.at[0]).toContain('log.test.ts')
})

it('describeError omits other properties and the end of a long message', () => {
  const error = Object.assign(new Error(`refused ${'x'.repeat(600)}secret`), {
    detail: 'Key (name)=(secret) already exists.',
    where: { row: 'secret' },
  })
  expect(JSON.stringify(describeError(error))).not.toContain('secret')
})

it('describeError does not take a line of a message for a stack frame', () => {
  const { at } = describeError(new Error('exec\n    at elsewhere (/root/elsewhere:1:1)\nfailed'))
  expect(at.join()).not.toContain('elsewhere')
  expect(at[0]).toContain('log.test.ts')
})

it('describeError accepts values that are not errors, and circular causes', () => {
  expect(describeError('a word')).toEqual({ type: 'string', message: 'a word', at: [] })
  const error = new Error('one')
  error.cause = error
  expect(describeError(error).cause?.cause?.cause?.cause).toBeUndefined()
})
