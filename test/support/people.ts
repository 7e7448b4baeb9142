// Calls as people make them from the pages of the service, and what they are refused with.

import type { Answer, Service } from './service.ts'

export type By = { cookie?: string; key?: string; headers?: Record<string, string> }

export async function sendBy<T>(
  service: Service,
  method: string,
  path: string,
  by: By,
  body?: unknown,
): Promise<Answer<T>> {
  return await service.call<T>(method, path, {
    ...by,
    body,
    headers: { origin: service.baseUrl, ...by.headers },
  })
}

export const refusal = ({ status, body }: Answer) => [
  status,
  (body as { error?: { code: string } }).error?.code,
]
