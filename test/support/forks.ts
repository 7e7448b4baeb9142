// Calls of a team that forks, over HTTP, and what there is of them on the engine.

import type { ForkResult } from '../../src/contract/fork.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Service } from './service.ts'

type Refused = { error: { code: string; message: string; details: Record<string, unknown> } }

export type Forker = ReturnType<typeof createForker>

/** `as` answers the key that calls are made with. */
export function createForker(service: Service, as: () => string) {
  const call = async <T>(method: string, path: string, body?: unknown, key = as()) =>
    await service.call<T & Refused>(method, path, { key, body })
  const get = async (id: string) => (await call<Unit>('GET', `/v1/units/${id}`)).body
  return {
    call,
    get,
    create: async (name: string, spec: object = {}, rest: object = {}): Promise<Unit> => {
      const body = { spec: { name, image: 'node:22', ...spec }, ...rest }
      const answer = await call<{ units: Unit[] }>('POST', '/v1/units', body)
      const [unit] = answer.body.units ?? []
      if (!unit) throw new Error(JSON.stringify(answer.body))
      return unit
    },
    fork: async (id: string, body: object = {}, key = as()) =>
      await call<ForkResult>('POST', `/v1/units/${id}/fork`, body, key),
    forkStack: async (id: string, body: object = {}, key = as()) =>
      await call<ForkResult>('POST', `/v1/stacks/${id}/fork`, body, key),
    units: async () => (await call<{ units: Unit[] }>('GET', '/v1/units')).body.units,
    exec: async (id: string, ...cmd: string[]) =>
      (await call<{ stdout: string }>('POST', `/v1/units/${id}/exec`, { cmd })).body.stdout,
    put: async (id: string, path: string, content: string) =>
      await call('PUT', `/v1/units/${id}/files?path=${path}`, Buffer.from(content)),
    read: async (id: string, path: string) => {
      const { body } = await call<{ contentBase64?: string }>('GET', `/v1/units/${id}/files?path=${path}`)
      return body.contentBase64 === undefined ? null : Buffer.from(body.contentBase64, 'base64').toString()
    },
    putToSleep: async (id: string, body: object = {}) =>
      await call('POST', `/v1/units/${id}/sleep`, { sleep: '10m', now: true, ...body }),
    machineOf: (id: string) => service.engine.machines().find((machine) => machine.id === id),
  }
}

export function only({ units: [unit, ...others] }: Pick<ForkResult, 'units'>): Unit {
  if (!unit || others.length > 0) throw new Error('expected one unit')
  return unit
}
