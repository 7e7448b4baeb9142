// A call that is no operation, or is refused before it becomes one: it has an audit row and counts against the rates as every call
// does.

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
    const refused = async () => {
      throw error
    }
    await runOperation(operations, sender, { route: callThat(refused), input: {}, signal })
    throw error
  }
}

/** Of a call for which no operation has run. Throws where there were too many. */
export async function countCall(
  { operations, signal }: Pick<Arrived, 'operations' | 'signal'>,
  sender: Sender,
): Promise<void> {
  if (sender.progress.hasRun) return
  await runOperation(operations, sender, { route: callThat(async () => null), input: {}, signal })
}

function callThat(handle: () => Promise<null>): Route {
  return defineRoute({
    method: 'POST',
    path: '/e2b',
    noun: 'call',
    summary: 'A call of another interface that is no operation here',
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
    handle,
  })
}
