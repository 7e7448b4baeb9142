// GET /v1/units/{id}/files/watch: what changes in a directory of a unit, as it changes.

import { z } from 'zod'
import { queryFlag, strict } from './fields.ts'
import { namedPathFields, withDirectory } from './files.ts'

export const watchQuerySchema = withDirectory({
  recursive: queryFlag.describe('Also what is below the directories in it.'),
})

const changeSchema = strict({
  ...namedPathFields,
  path: z.string().describe('From the watched directory; empty for that itself.'),
  isDirectory: z.boolean(),
}).meta({ id: 'FileChange' })
export type FileChange = z.infer<typeof changeSchema>

/** By name of the event. */
export const fileChangeEvents = {
  ready: strict({}).meta({ id: 'WatchReady' }),
  create: changeSchema,
  write: changeSchema,
  remove: changeSchema,
  rename: changeSchema,
  chmod: changeSchema,
  overflow: strict({
    lost: z
      .enum(['changes', 'directories'])
      .describe(
        '`changes`: there were too many at once. `directories`: there are more of them than can be watched.',
      ),
  }).meta({ id: 'WatchOverflow' }),
  end: strict({
    reason: z
      .enum(['removed', 'stopped', 'time'])
      .describe(
        '`removed`: the directory was removed or moved away. `stopped`: the run of the unit has ended. `time`: it was watched for as long as one call may.',
      ),
  }).meta({ id: 'WatchEnd' }),
} as const
export type WatchEnd = z.infer<(typeof fileChangeEvents)['end']>['reason']
