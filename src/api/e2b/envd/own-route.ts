// What the door itself offers beside the operations of the API: its calls have an audit row and a rate as theirs do.

import { z } from 'zod'
import { noBody } from '../../http/body.ts'
import { defineRoute, idParams, noQuery, type Route } from '../../route.ts'

type Own = {
  action:
    | 'unit.change'
    | 'process.input'
    | 'process.resize'
    | 'process.attach'
    | 'unit.directory.list'
    | 'unit.file.changes'
  kind: 'read' | 'change'
  record: Record<string, unknown>
}

/** `act` runs once the call was counted, and a change was written down. */
export function ownRoute({ action, kind, record }: Own, act: () => Promise<void>): Route {
  return defineRoute({
    method: 'POST',
    path: '/e2b/sandbox/{id}',
    noun: 'unit',
    summary: 'A call about what a client of another interface began in a sandbox',
    action,
    kind,
    rate: 'requests',
    params: idParams,
    query: noQuery,
    body: noBody,
    status: 200,
    response: z.null(),
    events: {},
    errors: [402, 404, 409, 502],
    target: ({ params }) => params.id,
    record: () => record,
    handle: async () => {
      await act()
      return null
    },
  })
}
