// Templates that clients build: a unit is made of an image or of another template, the steps run in it, and it becomes a
// snapshot with the template's name. A build is work of this server's life; a unit of one that broke off ends by its time.

import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { App } from '../../../app.ts'
import { conflict, notFound, rateLimited, validation } from '../../../contract/errors.ts'
import { parse } from '../../../contract/parse.ts'
import { HOUR } from '../../../lib/clock.ts'
import { createSemaphore, type Semaphore } from '../../../lib/concurrency/semaphore.ts'
import { toAppError } from '../../http/errors.ts'
import { notSupported } from '../errors.ts'
import { countCall } from '../refused.ts'
import { newSender } from '../run.ts'
import { type Build, recipeSchema, tell } from './build.ts'
import { runBuild } from './build-steps.ts'
import { type ControlAnswer, type ControlCall, readJson } from './call.ts'
import { findTagged, readReference, REFERENCE } from './snapshots.ts'
import { tagsSchema } from './tags.ts'
import { CODE_TEMPLATE, DEFAULT_TEMPLATE } from './templates.ts'

/** Builds of a team that run at once; more wait. */
const MAX_RUNNING = 4
/** Of a team, that are not over. */
const MAX_OPEN = 50
/** Of all teams, with those that are over. */
const MAX_KNOWN = 1000
const KNOWN_MS = HOUR
const LOG_PAGE = 100

type Builds = { byId: Map<string, Build>; places: Map<string, Semaphore> }

/** What this server knows of builds, by their ids, and the places of each team for those that run. */
const known = new WeakMap<App, Builds>()

function buildsOf(app: App): Builds {
  const builds = known.get(app) ?? { byId: new Map(), places: new Map() }
  known.set(app, builds)
  return builds
}

function placesOf(app: App, teamId: string): Semaphore {
  const { places } = buildsOf(app)
  const found = places.get(teamId) ?? createSemaphore(MAX_RUNNING)
  places.set(teamId, found)
  return found
}

const requestSchema = z.object({
  name: z.string().regex(REFERENCE, 'must be a name such as my-template or my-template:v1'),
  tags: tagsSchema.nullish(),
  cpuCount: z.int().min(1).nullish(),
  memoryMB: z.int().min(1).nullish(),
  minFreeDiskMb: z.int().min(0).nullish(),
})

/** POST /v3/templates: the build begins with the next call. */
export async function requestBuild(call: ControlCall): Promise<ControlAnswer> {
  const { app, sender } = call
  const { teamId } = sender.caller
  const asked = await readJson(call, requestSchema)
  const { byId } = buildsOf(app)
  const open = [...byId.values()].filter((build) => build.teamId === teamId && !isOver(build))
  if (open.length >= MAX_OPEN || byId.size >= MAX_KNOWN)
    throw rateLimited(`At most ${MAX_OPEN} builds of a team are open at once.`, 10)
  const size = sizeOf(asked)
  await countCall(call, sender)
  const id = randomBytes(16).toString('hex')
  const { name, tag } = readReference(asked.name) ?? { name: asked.name, tag: '' }
  const tags = [...new Set(asked.tags && asked.tags.length > 0 ? asked.tags : [tag])]
  const begins = { hasBegun: false, status: 'waiting', failure: null } as const
  byId.set(id, { id, teamId, name, tags, size, ...begins, log: [] })
  void app.clock.sleep(KNOWN_MS, call.stopping).then(
    () => byId.delete(id),
    () => {},
  )
  const names = tags.map((each) => `${name}:${each}`)
  return {
    status: 202,
    body: { templateID: name, buildID: id, public: false, names, tags, aliases: [name] },
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
  if (build.hasBegun) throw conflict('The build has begun already.')
  if (recipe.fromImageRegistry) throw notSupported('An image of a registry with credentials of its own')
  const other = recipe.steps.find(({ type }) => !STEPS.has(type))
  if (other) throw notSupported(`The step ${other.type}`)
  const unsent = recipe.steps.find(({ type, filesHash }) => type === 'COPY' && !filesHash)
  if (unsent) throw validation([{ path: 'steps', message: 'a step that copies must have a filesHash' }])
  await countCall(call, call.sender)
  build.hasBegun = true
  const { signal: _gone, ...rest } = call
  const going = { ...rest, sender: newSender(call.sender), signal: call.stopping }
  const inPlace = placesOf(
    call.app,
    build.teamId,
  )(async () => {
    build.status = 'building'
    await runBuild(going, build, recipe)
  })
  void inPlace.then(
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

const STEPS = new Set(['RUN', 'ENV', 'WORKDIR', 'USER', 'COPY'])

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
  const build = buildsOf(app).byId.get(id)
  if (build?.teamId !== sender.caller.teamId) throw notFound('build', id)
  return build
}

/** GET /templates/aliases/{alias}: whether there is such a template; without a tag, of any. */
export async function findAlias(call: ControlCall, alias: string): Promise<ControlAnswer> {
  if (!OWN.has(alias) && (await findTagged(call, alias)).length === 0) throw notFound('template', alias)
  return { status: 200, body: { templateID: alias, public: false } }
}

const OWN = new Set([DEFAULT_TEMPLATE, CODE_TEMPLATE])
