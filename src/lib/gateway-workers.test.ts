import { expect, it } from 'vitest'
import { defaultGatewayWorkers } from './gateway-workers.ts'

it('the number of gateways is half of the cores, from 1 to 8', () => {
  expect([1, 2, 3, 4, 7, 16, 64].map(defaultGatewayWorkers)).toEqual([1, 1, 1, 2, 3, 8, 8])
})
