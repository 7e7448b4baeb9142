// Serves the metrics and the health of a process, on an address for the operator that is never the public one.

import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Address } from '../config.ts'
import { SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

export type Metrics = {
  contentType: string
  read(): Promise<string>
  health(): Promise<{ isWell: boolean; parts: object }>
}

export type ShownMetrics = { port: number; close(): Promise<void> }

/** Enough for a few collectors and a person. */
const MAX_CONNECTIONS = 20

export async function serveMetrics(
  { host, port }: Address,
  { metrics, log }: { metrics: Metrics; log: Log },
): Promise<ShownMetrics> {
  const server = createServer({ requestTimeout: 10 * SECOND, headersTimeout: 5 * SECOND })
  server.maxConnections = MAX_CONNECTIONS
  server.on('request', (request, response) => {
    answer(metrics, `${request.method} ${request.url}`, response).catch((error: unknown) => {
      log.error({ err: error }, 'the metrics could not be read')
      send(response, 500, 'text/plain', 'the metrics could not be read\n')
    })
  })
  server.listen(port, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function answer(metrics: Metrics, asked: string, response: ServerResponse): Promise<void> {
  if (asked === 'GET /metrics') return send(response, 200, metrics.contentType, await metrics.read())
  if (asked !== 'GET /healthz') return send(response, 404, 'text/plain', 'GET /metrics or GET /healthz\n')
  const { isWell, parts } = await metrics.health()
  const body = JSON.stringify({ status: isWell ? 'ok' : 'unwell', ...parts })
  send(response, isWell ? 200 : 503, 'application/json', `${body}\n`)
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body)
}
