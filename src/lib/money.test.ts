import { expect, it } from 'vitest'
import { centDigits, euroDigits, euros, exactEuros } from './money.ts'

it.each([
  [0, '€0.00'],
  [-0, '€0.00'],
  [1e-12, '€0.00'],
  [1e-9, 'less than €0.0001'],
  [0.0099, 'less than €0.0001'],
  [0.01, '€0.0001'],
  [0.139, '€0.0014'],
  [0.5, '€0.0050'],
  [1, '€0.01'],
  [1.5, '€0.0150'],
  [84, '€0.84'],
  [84.374, '€0.8437'],
  [99.999, '€1.00'],
  [123.456, '€1.23'],
  [123_450, '€1,234.50'],
  [-0.001, 'just below €0.00'],
  [-0.5, '−€0.0050'],
  [-250, '−€2.50'],
])('an amount of %s cents is shown as %s', (cents, text) => {
  expect(euros(cents)).toBe(text)
})

it('an amount in a column, in a sentence and in full follows the same rounding', () => {
  expect(euros(0.001, '<')).toBe('< €0.0001')
  expect([euroDigits(1080), euroDigits(0.5)]).toEqual(['10.80', '0.0050'])
  expect([0, 0.5, 1, 1.239, 1000].map(centDigits)).toEqual(['0', '0.5', '1', '1.24', '1000'])
  expect([0.001388889, -5, 1e-12].map(exactEuros)).toEqual(['€0.00001388889', '−€0.05', '€0.00'])
})
