// Whether each of several gateway processes answers, while Berth runs.

import { type Config, httpUrl } from '../config.ts'
import { SECOND } from '../lib/clock.ts'
import { type Check, type Finding, ok, warn } from './check.ts'

export const gatewayWorkersCheck: Check = { name: 'gateway processes', run: gatewayWorkersFinding }

export async function gatewayWorkersFinding({
  gatewayWorkers,
  gatewayMetrics,
}: Pick<Config, 'gatewayWorkers' | 'gatewayMetrics'>): Promise<Finding> {
  if (gatewayWorkers === 1) return ok('one')
  const url = `${httpUrl(gatewayMetrics)}/healthz`
  const answer = await fetch(url, { signal: AbortSignal.timeout(5 * SECOND) }).catch(() => null)
  if (answer === null) return ok(`${gatewayWorkers}; none answers at ${url} now`)
  const { workers = {} } = (await answer.json()) as { workers?: Record<string, string> }
  const down = Object.keys(workers).filter((number) => workers[number] !== 'ok')
  if (down.length === 0) return ok(`${gatewayWorkers}, all of which answer`)
  return warn(
    `${down.length} of ${gatewayWorkers} does not answer: number ${down.join(', ')}`,
    'It is restarted by itself; the log says why it ended ("role":"gateway", with its number).',
  )
}
