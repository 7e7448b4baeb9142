// What the audit trail keeps of calls that carry more than names: contents by size, environment by name,
// commands without passwords (spec 2.12).

import type { Create } from '../contract/create.ts'
import type { Exec } from '../contract/exec.ts'
import { maskCommand, namesOf, sizesOf } from '../domain/audit/mask.ts'

export function recordCreate({ spec, ...rest }: Create): Record<string, unknown> {
  const { cmd, entrypoint, env, files, healthcheck, ...plain } = spec
  return {
    ...rest,
    spec: {
      ...plain,
      env: namesOf(env),
      files: sizesOf(files),
      ...(cmd && { cmd: maskCommand(cmd) }),
      ...(entrypoint && { entrypoint: maskCommand(entrypoint) }),
      ...(healthcheck && { healthcheck: { ...healthcheck, cmd: maskCommand(healthcheck.cmd) } }),
    },
  }
}

export function recordExec({ cmd, timeoutMs, stdin }: Exec): Record<string, unknown> {
  const stdinBytes = stdin === undefined ? null : Buffer.byteLength(stdin)
  return { cmd: maskCommand(cmd), timeoutMs, stdinBytes }
}
