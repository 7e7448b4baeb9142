// What the audit log stores of calls that carry contents or secrets: contents by size, environment by name, commands
// without passwords (spec 2.12).

import type { Create, CreateFromRecipe, CreateFromSpec } from '../../contract/create.ts'
import type { Exec } from '../../contract/exec.ts'
import type { UnitFork } from '../../contract/fork.ts'
import type { UnitCalls } from '../../contract/unit-calls.ts'
import type { UnitChange } from '../../contract/unit.ts'
import type { ProcessStart } from '../../contract/process.ts'
import { maskCommand, namesOf, sizesOf } from '../../domain/audit/mask.ts'

export function recordCreate(body: Create): Record<string, unknown> {
  return 'recipe' in body ? recordRecipe(body) : recordSpec(body)
}

/** Labels by name only: they may say for which person a unit is. */
export function recordChange({ metadata, ...rest }: Pick<UnitChange, 'metadata'>): Record<string, unknown> {
  return { ...rest, ...(metadata && { metadata: namesOf(metadata) }) }
}

export function recordFork({ env, ...rest }: UnitFork): Record<string, unknown> {
  return { ...recordChange(rest), ...(env && { env: namesOf(env) }) }
}

/** Stores only the names of the given parameters: any value may hold code or a password. */
function recordRecipe({ params, ...rest }: CreateFromRecipe): Record<string, unknown> {
  return { ...recordChange(rest), params: namesOf(params) }
}

function recordSpec({ spec, ...rest }: CreateFromSpec): Record<string, unknown> {
  const { cmd, entrypoint, env, files, healthcheck, metadata, ...plain } = spec
  return {
    ...rest,
    spec: {
      ...plain,
      env: namesOf(env),
      files: sizesOf(files),
      metadata: namesOf(metadata),
      ...(cmd && { cmd: maskCommand(cmd) }),
      ...(entrypoint && { entrypoint: maskCommand(entrypoint) }),
      ...(healthcheck && { healthcheck: { ...healthcheck, cmd: maskCommand(healthcheck.cmd) } }),
    },
  }
}

export function recordExec({ cmd, cwd, env, timeoutMs, stdin, user }: Exec): Record<string, unknown> {
  const stdinBytes = stdin === undefined ? null : Buffer.byteLength(stdin)
  const whose = user === undefined ? {} : { user }
  return { cmd: maskCommand(cmd), cwd: cwd ?? null, env: namesOf(env ?? {}), timeoutMs, stdinBytes, ...whose }
}

export function recordCalls({ calls }: UnitCalls): Record<string, unknown> {
  return { calls: calls.map(({ cmd, ...rest }) => ({ ...rest, ...(cmd && { cmd: maskCommand(cmd) }) })) }
}

export function recordProcess({ stdin, cmd, cwd, env, ...plain }: ProcessStart): Record<string, unknown> {
  const stdinBytes = stdin === undefined ? null : Buffer.byteLength(stdin)
  return { ...plain, cmd: maskCommand(cmd), cwd: cwd ?? null, env: namesOf(env), stdinBytes }
}
