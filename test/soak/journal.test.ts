import { expect, test } from 'vitest'
import { createJournal } from './journal.ts'

test('the journal reports a lost write after hours of other faults', () => {
  const journal = createJournal()
  for (let count = 0; count < 5000; count++) {
    journal.fault(`get was answered 500: request req_${count}`)
    journal.fault(`unit_${count}abc is starting for more than 90 s`)
  }
  journal.fault('3 of 70 words of shop-1 are lost: shop-1-4-5')
  expect(journal.faults.at(-1)).toBe('3 of 70 words of shop-1 are lost: shop-1-4-5')
  expect(journal.faults).toHaveLength(21)
})
