// A call that is refused before it becomes an operation: it has an audit row and counts against the rates as every call does.

import { z } from 'zod'
import { noBody } from '../http/body.ts'
import { defineRoute, noParams, noQuery, type Route } from '../route.ts'
import { runOperation, type Sender } from './run.ts'
import type { Arrived } from './sandbox-call.ts'

/** Does `work`. If it fails before any operation has run, the failure is that of an operation of its own. */
export async function orRefused<T>(
  { operations, signal }: Pick<Arrived, 'operations' | 'signal'>,
  sender: Sender,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (sender.progress.hasRun) throw error
    await runOperation(operations, sender, { route: refusalWith(error), input: {}, signal })
    throw error
  }
}

function refusalWith(error: unknown): Route {
  return defineRoute({
    method: 'POST',
    path: '/e2b',
    noun: 'call',
    summary: 'A call of another interface that is refused',
    action: 'e2b.call',
    kind: 'read',
    rate: 'requests',
    params: noParams,
    query: noQuery,
    body: noBody,
    status: 200,
    response: z.null(),
    events: {},
    errors: [],
    target: () => null,
    record: () => null,
    handle: async () => {
      throw error
    },
  })
}
