import { expect, it } from 'vitest'
import { describeError } from './log.ts'

it('an error is logged by its type, its message, its code and where it came from', () => {
  const refused = Object.assign(new TypeError('no'), { code: 'ECONNREFUSED', syscall: 'connect' })
  const described = describeError(new Error('not reached', { cause: refused }))
  expect(described).toMatchObject({
    type: 'Error',
    message: 'not reached',
    cause: { type: 'TypeError', message: 'no', code: 'ECONNREFUSED', syscall: 'connect' },
  })
  expect(described.at[0]).toContain('log.test.ts')
})

it('nothing else that an error carries is logged, and of a long message the beginning', () => {
  const error = Object.assign(new Error(`refused ${'x'.repeat(600)}secret`), {
    detail: 'Key (name)=(secret) already exists.',
    where: { row: 'secret' },
  })
  expect(JSON.stringify(describeError(error))).not.toContain('secret')
})

it('a line of a message that looks like a frame is none', () => {
  const { at } = describeError(new Error('exec\n    at elsewhere (/root/elsewhere:1:1)\nfailed'))
  expect(at.join()).not.toContain('elsewhere')
  expect(at[0]).toContain('log.test.ts')
})

it('what is thrown and is no error does no harm, nor do causes in a circle', () => {
  expect(describeError('a word')).toEqual({ type: 'string', message: 'a word', at: [] })
  const error = new Error('one')
  error.cause = error
  expect(describeError(error).cause?.cause?.cause?.cause).toBeUndefined()
})
