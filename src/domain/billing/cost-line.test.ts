import { expect, it } from 'vitest'
import { costLine } from './cost-line.ts'

it.each([
  [
    [{ size: 'small', sleep: '30m' }],
    '0.5 euro cents an hour while running (small). Sleeps after 30 minutes without use;',
  ],
  [
    [{ size: 'large', sleep: '1h' }],
    '3 euro cents an hour while running (large). Sleeps after 1 hour without use;',
  ],
  [
    [{ size: 'medium', sleep: 'never' }],
    '1.5 euro cents an hour while running (medium). Never sleeps: about 10.80 euros for 30 days.',
  ],
  [
    [
      { size: 'nano', sleep: '2d' },
      { size: 'nano', sleep: '2d' },
    ],
    '0.5 euro cents an hour while running (nano, nano). Sleeps after 2 days without use;',
  ],
] as const)('%j reads well', (units, text) => {
  expect(costLine([...units])).toContain(text)
})
