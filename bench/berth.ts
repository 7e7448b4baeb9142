// Measures the figures of design 9 as a caller of the API.

import { type Actions, type Figures, measure } from './figures.ts'
import type { Berth } from './service.ts'

const IMAGE = 'berth.local/debian:12'

export async function measureBerth(call: Call, rounds: number): Promise<Figures> {
  return await measure(rounds, actionsOf(call))
}

/** `more`: further fields of the spec. */
export function actionsOf(call: Call, more: object = {}): Actions {
  return {
    create: () =>
      call('POST', '/v1/units', {
        spec: { name: 'bench', image: IMAGE, cmd: ['sleep', 'infinity'], ...more },
      }).then((result) => (result as { units: { id: string }[] }).units[0]?.id ?? ''),
    exec: (id) => call('POST', `/v1/units/${id}/exec`, { cmd: ['echo', 'hello'] }),
    destroy: (id) => call('DELETE', `/v1/units/${id}`),
  }
}

/** A call of the API; throws unless it succeeded. */
export type Call = (method: string, path: string, body?: unknown) => Promise<unknown>

export function clientOf({ baseUrl, apiKey }: Pick<Berth, 'baseUrl' | 'apiKey'>): Call {
  return async (method, path, body) => {
    const answer = await fetch(baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
}

export async function destroyAll(call: Call): Promise<void> {
  for (;;) {
    const { units } = (await call('GET', '/v1/units?limit=500')) as { units: { id: string }[] }
    if (units.length === 0) return
    for (const { id } of units) await call('DELETE', `/v1/units/${id}`)
  }
}
