// What a build of a template does, one step after the other, as operations of the API.

import { posix } from 'node:path'
import { providerError } from '../../../contract/errors.ts'
import type { ExecResult } from '../../../contract/exec.ts'
import { limits } from '../../../contract/limits.ts'
import type { Process } from '../../../contract/process.ts'
import type { Unit } from '../../../contract/unit.ts'
import { MINUTE, SECOND } from '../../../lib/clock.ts'
import { toAppError } from '../../http/errors.ts'
import { type Build, type Recipe, tell } from './build.ts'
import { type ControlCall, perform } from './call.ts'
import { copying } from './copy-files.ts'
import { START, startingOf, STARTS_BY } from './start-command.ts'
import { copyUnit, createUnit, discardUnit, newName, sleepNow, startUnit } from './make.ts'
import { SNAPSHOT_OF } from './sandbox.ts'
import { findSnapshot, labelsWith, SNAPSHOT_STACK } from './snapshots.ts'
import { BUILD, takeTags } from './tags.ts'
import { carryFiles } from './template-files.ts'
import { imageOf } from './templates.ts'

/** A unit of a build that broke off ends after this. */
const BUILD_ENDS = '2h'
const STEP_MS = limits.execTimeoutMs.max
const READY_WITHIN_MS = 10 * MINUTE
const READY_EVERY_MS = SECOND
/** How long a start command runs before the snapshot where nothing says when it is ready. */
const UNTIL_READY = 'sleep 20'

/** The user of commands in sandboxes, which images from elsewhere lack. */
const PROVISION = `id user >/dev/null 2>&1 || useradd -m -s /bin/bash user 2>/dev/null || adduser -D user 2>/dev/null || true`
const SHELL = 'if command -v bash >/dev/null; then exec bash -l -c "$1"; else exec sh -l -c "$1"; fi'

type Place = { user: string; cwd: string; env: Record<string, string> }

/** Resolves once the template is there. Throws why it could not be built, and leaves no unit then. */
export async function runBuild(call: ControlCall, build: Build, recipe: Recipe): Promise<void> {
  const unit = await begin(call, build, recipe).catch((error: unknown) => failAt(build, 'base', error))
  try {
    await runIn(call, unit, { cmd: ['/bin/sh', '-c', PROVISION], user: 'root' })
    const place: Place = { user: 'user', cwd: '/', env: {} }
    await enter(call, unit, place, '/home/user')
    for (const [at, step] of recipe.steps.entries()) {
      tell(build, 'info', `[${at + 1}/${recipe.steps.length}] ${step.type} ${step.args.join(' ')}`)
      await runStep(call, build, { unit, place, step }).catch((error: unknown) =>
        failAt(build, String(at + 1), error),
      )
    }
    await startCommand(call, build, { unit, place, recipe }).catch((error: unknown) =>
      failAt(build, 'finalize', error),
    )
    await sleepNow(call, unit.id)
    const labels = { [SNAPSHOT_OF]: 'template', [BUILD]: build.id, ...startLabel(recipe, place) }
    const metadata = { ...labels, ...labelsWith(build.name, build.tags) }
    await takeTags(call, build.name, build.tags, unit.id)
    await perform(call, {
      route: 'PATCH /v1/units/{id}',
      input: { params: { id: unit.id }, body: { metadata, timeToLive: 'never' } },
    })
  } catch (error) {
    await discardUnit(call, unit.id)
    throw error
  }
}

/** Clients point at the line of their program by the step. */
function failAt(build: Build, step: string, error: unknown): never {
  build.failure ??= { message: toAppError(error).message, step }
  throw error
}

async function begin(
  call: ControlCall,
  build: Build,
  { fromImage, fromTemplate, steps }: Recipe,
): Promise<Unit> {
  const common = { name: newName('template'), sleep: 'never', metadata: {} }
  const end = { timeToLive: BUILD_ENDS, atEnd: 'destroy' }
  const base = fromTemplate ?? fromImage ?? 'base'
  const snapshot =
    fromTemplate === null || fromTemplate === undefined ? null : await findSnapshot(call, fromTemplate)
  tell(build, 'info', `FROM ${base}`)
  const env = Object.assign(
    {},
    ...steps.filter(({ type }) => type === 'ENV').map(({ args }) => pairsOf(args)),
  ) as object
  if (snapshot !== null) {
    const copy = await copyUnit(call, snapshot.id, { ...common, ...end, env, stack: SNAPSHOT_STACK })
    return await startUnit(call, copy.id)
  }
  const spec = { ...common, ...end, image: imageOf(base), size: build.size, env }
  const body = { stack: SNAPSHOT_STACK, spec }
  return await createUnit(call, () => body)
}

type Stepping = { unit: Unit; place: Place; step: Recipe['steps'][number] }

async function runStep(call: ControlCall, build: Build, { unit, place, step }: Stepping): Promise<void> {
  const [first = '', second = ''] = step.args
  if (step.type === 'USER') await become(call, unit, place, first)
  else if (step.type === 'WORKDIR') await enter(call, unit, place, first)
  else if (step.type === 'ENV') Object.assign(place.env, pairsOf(step.args))
  else if (step.type === 'COPY') await runCopy(call, build, { unit, place, step })
  else
    await runCommand(call, build, unit, {
      ...place,
      cmd: ['/bin/sh', '-c', SHELL, 'run', first],
      user: second === '' ? place.user : second,
    })
}

async function runCopy(call: ControlCall, build: Build, { unit, place, step }: Stepping): Promise<void> {
  const [source = '', destination = '', owner = '', mode = ''] = step.args
  const archive = await carryFiles(call, step.filesHash ?? '', unit)
  const copied = { archive, source, destination, mode, owner: owner === '' ? place.user : owner }
  await runCommand(call, build, unit, { cmd: copying(copied), user: 'root', cwd: place.cwd })
}

type Command = { cmd: string[]; user: string; cwd?: string; env?: Record<string, string> }

/** Throws how it failed. What it printed is in the log of the build. */
async function runCommand(call: ControlCall, build: Build, unit: Unit, command: Command): Promise<void> {
  const result = await runIn(call, unit, command)
  tell(build, 'info', result.stdout)
  tell(build, result.exitCode === 0 ? 'info' : 'error', result.stderr)
  if (result.timedOut) throw providerError('The command took longer than an hour.')
  if (result.exitCode !== 0)
    throw providerError(`The command failed with exit code ${result.exitCode}: ${result.stderr.slice(-1000)}`)
}

/** A group behind the user is that of the user here. */
async function become(call: ControlCall, unit: Unit, place: Place, named: string): Promise<void> {
  const [user = ''] = named.split(':')
  const { exitCode, stderr } = await runIn(call, unit, { cmd: ['/bin/sh', '-c', 'true'], user })
  if (exitCode !== 0) throw providerError(`Commands cannot run as "${user}": ${stderr.slice(-500)}`)
  place.user = user
}

/** A folder that is not there is made, and belongs to the user. */
async function enter(call: ControlCall, unit: Unit, place: Place, folder: string): Promise<void> {
  const cwd = posix.resolve(place.cwd, folder)
  const make = 'test -d "$1" || { mkdir -p "$1" && chown "$2" "$1"; }'
  const { exitCode, stderr } = await runIn(call, unit, {
    cmd: ['/bin/sh', '-c', make, 'enter', cwd, place.user],
    user: 'root',
  })
  if (exitCode !== 0) throw providerError(`${cwd} cannot be the working directory: ${stderr.slice(-500)}`)
  place.cwd = cwd
}

/** The environment is that of the template. */
function startLabel({ startCmd }: Recipe, { user, cwd }: Place): Record<string, string> {
  if (!startCmd) return {}
  return { [START]: startingOf({ user, cwd, cmd: cmdOf(`eval "$(cat ${STARTS_BY})"`) }) }
}

const cmdOf = (command: string) => ['/bin/sh', '-c', SHELL, 'run', command]

/** Sandboxes of the template begin it again: what runs while a template is built ends when that falls asleep. */
async function startCommand(
  call: ControlCall,
  build: Build,
  { unit, place, recipe: { startCmd, readyCmd } }: { unit: Unit; place: Place; recipe: Recipe },
): Promise<void> {
  let started: Process | null = null
  if (startCmd) {
    tell(build, 'info', `START ${startCmd}`)
    const params = { id: unit.id }
    const file = { params, query: { path: STARTS_BY }, body: Buffer.from(startCmd) }
    await perform(call, { route: 'PUT /v1/units/{id}/files', input: file })
    const body = { ...place, cmd: cmdOf(startCmd) }
    started = (await perform(call, {
      route: 'POST /v1/units/{id}/processes',
      input: { params, body },
    })) as Process
  }
  const ready = readyCmd ? readyCmd : startCmd ? UNTIL_READY : null
  if (ready === null) return
  const { clock } = call.app
  const untilMs = clock.monotonicMs() + READY_WITHIN_MS
  for (;;) {
    const { exitCode } = await runIn(call, unit, { ...place, cmd: cmdOf(ready) })
    if (started !== null) await checkStarted(call, unit, started)
    if (exitCode === 0) return
    if (clock.monotonicMs() > untilMs)
      throw providerError('The ready command did not succeed within ten minutes.')
    await clock.sleep(READY_EVERY_MS, call.stopping)
  }
}

/** One that leaves its work to the background may have ended, but not failed. */
async function checkStarted(call: ControlCall, { id }: Unit, { id: processId }: Process): Promise<void> {
  const input = { params: { id, processId } }
  const route = 'GET /v1/units/{id}/processes/{processId}'
  const { state, exitCode } = (await perform(call, { route, input })) as Process
  if (state === 'running' || exitCode === 0 || exitCode === null) return
  throw providerError(`The start command failed with exit code ${exitCode}.`)
}

async function runIn(call: ControlCall, { id }: Unit, body: Command): Promise<ExecResult> {
  const input = { params: { id }, body: { ...body, timeoutMs: STEP_MS } }
  return (await perform(call, { route: 'POST /v1/units/{id}/exec', input })) as ExecResult
}

function pairsOf(args: string[]): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (let at = 0; at + 1 < args.length; at += 2) pairs[args[at] ?? ''] = args[at + 1] ?? ''
  return pairs
}
