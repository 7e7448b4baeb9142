import { expect, it } from 'vitest'
import { costLine } from './cost-line.ts'

const spec = {
  entrypoint: null,
  cmd: null,
  env: {},
  ports: [],
  databasePorts: [],
  expose: null,
  files: [],
  healthcheck: null,
}

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
  [
    [{ size: 'small', sleep: '30m', gb: 10 }],
    '0.5 euro cents an hour while running (small). Volumes of 10 GB: 72 euro cents for 30 days, awake or asleep, until destroyed. Sleeps',
  ],
  [
    [
      { size: 'nano', sleep: 'never' },
      { size: 'large', sleep: '2d', gb: 1 },
    ],
    'Never sleeps: about 1.80 euros for 30 days. Sleeps after 2 days without use;',
  ],
] as const)('the cost line of %j is correct', (units, text) => {
  const priced = units.map(({ size, sleep, ...rest }) => ({
    size,
    sleep,
    spec: { ...spec, volume: 'gb' in rest ? { mount: '/data', gb: rest.gb } : null },
  }))
  expect(costLine(priced)).toContain(text)
})
