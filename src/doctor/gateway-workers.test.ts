import { expect, it } from 'vitest'
import { createGatewayMetrics, withOtherWorkers } from '../metrics/gateway-metrics.ts'
import { serveMetrics } from '../metrics/serve.ts'
import { freePort } from '../lib/free-port.ts'
import { silentLog } from '../lib/log.ts'
import { gatewayWorkersFinding } from './gateway-workers.ts'

it('the doctor names a gateway process that does not answer', async () => {
  const away = new Set<number>()
  const own = createGatewayMetrics(() => ({ connections: 0, visits: 0 }), { number: 0 })
  const read = async (worker: number) => {
    if (away.has(worker)) throw new Error('it does not answer')
    return ''
  }
  const metrics = withOtherWorkers(own, { others: [1, 2], read })
  const shown = await serveMetrics({ host: '127.0.0.1', port: 0 }, { metrics, log: silentLog })
  const settings = { gatewayWorkers: 3, gatewayMetrics: { host: '127.0.0.1', port: shown.port } }
  expect(await gatewayWorkersFinding(settings)).toMatchObject({ state: 'ok' })
  away.add(2)
  expect(await gatewayWorkersFinding(settings)).toMatchObject({
    state: 'warn',
    detail: '1 of 3 does not answer: number 2',
  })
  await shown.close()
})

it('the doctor is content with one gateway process, and with a Berth that does not run', async () => {
  const gatewayMetrics = { host: '127.0.0.1', port: await freePort('127.0.0.1') }
  for (const gatewayWorkers of [1, 2])
    expect(await gatewayWorkersFinding({ gatewayWorkers, gatewayMetrics })).toMatchObject({ state: 'ok' })
})
