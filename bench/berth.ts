// The figures of design 9, asked for as a caller would.

import { type Figures, measure } from './figures.ts'
import type { Berth } from './service.ts'

const IMAGE = 'berth.local/debian:12'

export function measureBerth(call: Call, rounds: number): Promise<Figures> {
  const create = () =>
    call('POST', '/v1/units', { spec: { name: 'bench', image: IMAGE, cmd: ['sleep', 'infinity'] } }).then(
      (result) => (result as { units: { id: string }[] }).units[0]?.id ?? '',
    )
  const exec = (id: string) => call('POST', `/v1/units/${id}/exec`, { cmd: ['echo', 'hello'] })
  const destroy = (id: string) => call('DELETE', `/v1/units/${id}`)

  return measure(rounds, { create, exec, destroy })
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
  const { units } = (await call('GET', '/v1/units?limit=500')) as { units: { id: string }[] }
  for (const { id } of units) await call('DELETE', `/v1/units/${id}`)
}
