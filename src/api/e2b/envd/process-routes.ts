// What the door itself offers beside the operations of the API: its calls have an audit row and a rate as theirs do.

import { z } from 'zod'
import { noBody } from '../../http/body.ts'
import { defineRoute, idParams, noQuery, type Route } from '../../route.ts'

/** A call about a process that a client started. `act` runs once the call was counted and written down. */
export function processRoute(
  action: 'process.input' | 'process.resize' | 'process.attach',
  named: Record<string, unknown>,
  act: () => Promise<void>,
): Route {
  return defineRoute({
    method: 'POST',
    path: '/e2b/sandbox/{id}/process',
    noun: 'unit',
    summary: 'A call about a process in a sandbox',
    action,
    kind: action === 'process.attach' ? 'read' : 'change',
    rate: 'requests',
    params: idParams,
    query: noQuery,
    body: noBody,
    status: 200,
    response: z.null(),
    events: {},
    errors: [404],
    target: ({ params }) => params.id,
    record: () => named,
    handle: async () => {
      await act()
      return null
    },
  })
}
