// GET /v1/events: what changes in a team.

import { z } from 'zod'
import { teamEventSchemas } from '../../contract/events.ts'
import { followTeam } from '../../domain/events/team-events.ts'
import { noBody } from '../http/body.ts'
import { errorSchema } from '../http/errors.ts'
import { EVENT_STREAM, eventStream } from '../http/sse.ts'
import { defineRoute, noParams, noQuery, type Route } from '../route.ts'

const follow = defineRoute({
  method: 'GET',
  path: '/v1/events',
  noun: 'event',
  summary: 'Follow what changes in the team',
  description:
    'A stream: `unit`, `stack` and `agent` as they are now, `gone` with the id of a unit or stack that is destroyed, and ' +
    '`money`. Use and money come every ten seconds at most, everything else at once. `reset` says that the lists are to ' +
    'be read again: it comes first, but where the header `Last-Event-ID` goes on with a stream of the last minute. ' +
    'It is no use of any unit.',
  action: 'event.follow',
  kind: 'read',
  rate: 'requests',
  params: noParams,
  query: noQuery,
  body: noBody,
  status: 200,
  media: EVENT_STREAM,
  response: z.string(),
  events: { ...teamEventSchemas, error: errorSchema },
  errors: [],
  target: () => null,
  record: () => null,
  handle: async (app, _input, { caller, lastEventId, signal }) =>
    eventStream(async (send) => {
      for await (const event of followTeam(app, caller, lastEventId, signal)) await send(event)
    }),
})

export const eventRoutes: readonly Route[] = [follow]
