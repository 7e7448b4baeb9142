// Templates that clients build: a unit is made of an image or of another template, the steps run in it, and it becomes a
// snapshot with the template's name. A build is work of this server's life; a unit of one that broke off ends by its time.

import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { App } from '../../../app.ts'
import { conflict, notFound, rateLimited, validation } from '../../../contract/errors.ts'
import { parse } from '../../../contract/parse.ts'
import { HOUR } from '../../../lib/clock.ts'
import { toAppError } from '../../http/errors.ts'
import { notSupported } from '../errors.ts'
import { newSender } from '../run.ts'
import { type Build, recipeSchema, tell } from './build.ts'
import { runBuild } from './build-steps.ts'
import { type ControlAnswer, type ControlCall, readJson } from './call.ts'
import { findSnapshot, nameOf, REFERENCE } from './snapshots.ts'
import { DEFAULT_TEMPLATE } from './templates.ts'

/** A build of a team's template, while it runs. */
const MAX_RUNNING = 4
/** Of all teams, with those that are over. */
const MAX_KNOWN = 1000
const KNOWN_MS = HOUR
const LOG_PAGE = 100

/** What this server knows of builds, by their ids. */
const known = new WeakMap<App, Map<string, Build>>()

function buildsOf(app: App): Map<string, Build> {
  const builds = known.get(app) ?? new Map<string, Build>()
  known.set(app, builds)
  return builds
}

const requestSchema = z.object({
  name: z.string().regex(REFERENCE, 'must be a name such as my-template or my-template:v1'),
  tags: z.array(z.string()).max(16).nullish(),
  cpuCount: z.int().min(1).nullish(),
  memoryMB: z.int().min(1).nullish(),
  minFreeDiskMb: z.int().min(0).nullish(),
})

/** POST /v3/templates: the build begins with the next call. */
export async function requestBuild(call: ControlCall): Promise<ControlAnswer> {
  const { app, sender } = call
  const { teamId } = sender.caller
  const asked = await readJson(call, requestSchema)
  const [tag, ...more] = asked.tags ?? []
  if (more.length > 0) throw notSupported('A template with several tags')
  const builds = buildsOf(app)
  const running = [...builds.values()].filter((build) => build.teamId === teamId && !isOver(build))
  if (running.length >= MAX_RUNNING || builds.size >= MAX_KNOWN)
    throw rateLimited(`At most ${MAX_RUNNING} builds of a team run at once.`, 10)
  const id = randomBytes(16).toString('hex')
  const name = nameOf(tag === undefined ? asked.name : `${asked.name.split(':')[0]}:${tag}`)
  builds.set(id, { id, teamId, name, size: sizeOf(asked), status: 'waiting', log: [], failure: null })
  void app.clock.sleep(KNOWN_MS, call.stopping).then(
    () => builds.delete(id),
    () => {},
  )
  const [templateID = '', ofTag = ''] = name.split(':')
  return {
    status: 202,
    body: { templateID, buildID: id, public: false, names: [name], tags: [ofTag], aliases: [templateID] },
  }
}

/** The smallest that has as much of both; the API's default where nothing is asked. */
function sizeOf({
  cpuCount,
  memoryMB,
}: Pick<z.output<typeof requestSchema>, 'cpuCount' | 'memoryMB'>): Build['size'] {
  const [cpus, memory] = [cpuCount ?? 0, memoryMB ?? 0]
  if (cpus === 0 && memory <= 512) return 'small'
  if (cpus <= 1 && memory <= 2048) return 'medium'
  if (cpus <= 2 && memory <= 4096) return 'large'
  throw validation([
    { path: 'cpuCount', message: 'a template has at most 2 processors and 4096 MB of memory' },
  ])
}

/** POST /v2/templates/{id}/builds/{build}: answers at once; the build goes on without the client. */
export async function startBuild(
  call: ControlCall,
  _template: string,
  buildId: string,
): Promise<ControlAnswer> {
  const recipe = await readJson(call, recipeSchema)
  const build = findBuild(call, buildId)
  if (build.status !== 'waiting') throw conflict('The build has begun already.')
  if (recipe.fromImageRegistry) throw notSupported('An image of a registry with credentials of its own')
  const other = recipe.steps.find(({ type }) => !['RUN', 'ENV', 'WORKDIR', 'USER'].includes(type))
  if (other) throw notSupported(`The step ${other.type}`)
  build.status = 'building'
  const { signal: _gone, ...rest } = call
  const going = { ...rest, sender: newSender(call.sender), signal: call.stopping }
  void runBuild(going, build, recipe).then(
    () => {
      build.status = 'ready'
    },
    (error: unknown) => {
      build.failure ??= { message: toAppError(error).message }
      tell(build, 'error', build.failure.message)
      build.status = 'error'
    },
  )
  return { status: 202, body: {} }
}

const statusSchema = z.object({ logsOffset: z.coerce.number().int().min(0).default(0) })

export async function readBuild(
  call: ControlCall,
  templateID: string,
  buildId: string,
): Promise<ControlAnswer> {
  const { status, log, failure } = findBuild(call, buildId)
  const { logsOffset } = parse(statusSchema, Object.fromEntries(call.query))
  const logEntries = log.slice(logsOffset, logsOffset + LOG_PAGE)
  const logs = logEntries.map(({ message }) => message)
  const reason = failure === null ? {} : { reason: { ...failure, logEntries: [] } }
  return { status: 200, body: { templateID, buildID: buildId, status, logEntries, logs, ...reason } }
}

function isOver({ status }: Build): boolean {
  return status === 'ready' || status === 'error'
}

function findBuild({ app, sender }: ControlCall, id: string): Build {
  const build = buildsOf(app).get(id)
  if (build?.teamId !== sender.caller.teamId) throw notFound('build', id)
  return build
}

/** GET /templates/aliases/{alias}: whether there is such a template. */
export async function findAlias(call: ControlCall, alias: string): Promise<ControlAnswer> {
  if (alias !== DEFAULT_TEMPLATE && (await findSnapshot(call, alias)) === null)
    throw notFound('template', alias)
  return { status: 200, body: { templateID: alias, public: false } }
}
