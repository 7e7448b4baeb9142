// What a reader of the documentation must never get: a URL behind which nothing listens.

import { builtIns } from '../../src/engine/oci/images/builtin-images.ts'
import type { Service } from './service.ts'

/** The built-in images whose own command is a server, as `berth.local/nginx:1.22`. */
const servers = builtIns.flatMap(({ name, version, ports }) =>
  ports === undefined ? [] : [`berth.local/${name}:${version}`],
)

/** Answers the names of the team's units, destroyed ones too, that got a URL although nobody started a server in them. */
export async function publishedInVain({ app: { db } }: Service, teamId: string): Promise<string[]> {
  const published = await db
    .selectFrom('endpoints')
    .innerJoin('units', 'units.id', 'endpoints.unit_id')
    .where('endpoints.team_id', '=', teamId)
    .where('endpoints.protocol', '=', 'http')
    .select(['units.id', 'units.name', 'units.image', 'units.spec'])
    .execute()
  const started = await db
    .selectFrom('audit')
    .where('team_id', '=', teamId)
    .where('action', '=', 'process.start')
    .select('target')
    .execute()
  const withServer = new Set(started.map(({ target }) => target))
  return published
    .filter(({ id, image, spec }) => spec.cmd === null && !servers.includes(image) && !withServer.has(id))
    .map(({ name }) => name)
}
