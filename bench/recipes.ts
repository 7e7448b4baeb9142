// Measures the time until the units of a recipe are ready, with images that are already on the host.

import type { Call } from './berth.ts'
import { type Figures, timed } from './figures.ts'

const params: Record<string, unknown> = {
  redis: {},
  postgres: {},
  mariadb: {},
  etcd: {},
  rabbitmq: {},
  static: { files: { 'index.html': 'hello' } },
  node: {
    files: { 'server.js': "require('http').createServer((_, answer) => answer.end('hello')).listen(8080)" },
  },
  python: { files: { 'main.py': 'import http.server\nhttp.server.test(port=8080)' } },
}

export async function measureRecipes(call: Call, rounds: number): Promise<Figures> {
  const figures: Figures = {}
  for (const [recipe, given] of Object.entries(params)) {
    const create = async () =>
      (await call('POST', '/v1/units', { recipe, params: given, waitTimeoutMs: 300_000 })) as {
        units: { id: string }[]
      }
    const destroy = async ({ units }: Awaited<ReturnType<typeof create>>) => {
      for (const { id } of units) await call('DELETE', `/v1/units/${id}`)
    }
    // The first one of an image may build it.
    await destroy(await create())
    const samples: number[] = []
    for (let round = 0; round < rounds; round += 1) await destroy(await timed(samples, create))
    figures[`${recipe}, ready`] = samples
  }
  return figures
}
