// GET /v1/events: what changes in a team.

import { z } from 'zod'
import { eventsQuerySchema, teamEventSchemas } from '../../contract/events.ts'
import { followTeam } from '../../domain/events/team-events.ts'
import { noBody } from '../http/body.ts'
import { errorSchema } from '../http/errors.ts'
import { EVENT_STREAM, eventStream } from '../http/sse.ts'
import { defineRoute, noParams, type Route } from '../route.ts'

const follow = defineRoute({
  method: 'GET',
  path: '/v1/events',
  noun: 'event',
  summary: 'Follow what changes in the team',
  description:
    'A stream of events. `unit`, `stack` and `agent` have the current object, `gone` the id of a destroyed unit or stack. ' +
    '`host` tells that a host of the team is away, answers again, is drained or given up. `process` tells that a background ' +
    'process has ended, and `money` what was spent. `change`, if asked for, tells who did what. Changes of use and money are sent every ten seconds at most, all others ' +
    'at once. `reset` means that the client must read the lists again. It comes first, unless the header `Last-Event-ID` ' +
    'resumes a stream of the last minute. Following does not count as use of any unit.',
  action: 'event.follow',
  kind: 'read',
  params: noParams,
  query: eventsQuerySchema,
  body: noBody,
  media: EVENT_STREAM,
  response: z.string(),
  events: { ...teamEventSchemas, error: errorSchema },
  errors: [],
  target: () => null,
  record: ({ query }) => query,
  handle: async (app, { query }, { caller, lastEventId, signal }) =>
    eventStream(async (send) => {
      for await (const event of followTeam(app, caller, lastEventId, signal, query)) await send(event)
    }),
})

export const eventRoutes: readonly Route[] = [follow]
