// The system calls a runc machine may make: the default profile that Debian ships for containers
// (golang-github-containers-common), turned into the form the OCI runtime takes for our capabilities.
// gVisor makes no system call of the machine on the host and needs none of this.

import { readFileSync } from 'node:fs'
import { arch } from 'node:os'
import { z } from 'zod'

export const SECCOMP_PROFILE = '/usr/share/containers/seccomp.json'

const conditionSchema = z.object({
  caps: z.array(z.string()).optional(),
  arches: z.array(z.string()).optional(),
})

const profileSchema = z.object({
  defaultAction: z.string(),
  defaultErrnoRet: z.number().optional(),
  archMap: z.array(z.object({ architecture: z.string(), subArchitectures: z.array(z.string()) })),
  syscalls: z.array(
    z.object({
      names: z.array(z.string()),
      action: z.string(),
      args: z.array(z.unknown()).nullish(),
      errnoRet: z.number().optional(),
      includes: conditionSchema.default({}),
      excludes: conditionSchema.default({}),
    }),
  ),
})

export type Seccomp = {
  defaultAction: string
  defaultErrnoRet?: number
  architectures: string[]
  syscalls: { names: string[]; action: string; args?: unknown[]; errnoRet?: number }[]
}

const architectures: Record<string, { name: string; seccomp: string }> = {
  x64: { name: 'amd64', seccomp: 'SCMP_ARCH_X86_64' },
  arm64: { name: 'arm64', seccomp: 'SCMP_ARCH_AARCH64' },
}

export function loadSeccomp(capabilities: readonly string[], path = SECCOMP_PROFILE): Seccomp {
  const profile = profileSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  const host = architectures[arch()]
  if (!host) throw new Error(`Berth has no seccomp architecture for ${arch()}`)
  const family = profile.archMap.find((entry) => entry.architecture === host.seccomp)
  const applies = (rule: (typeof profile.syscalls)[number]) =>
    (rule.includes.caps ?? []).every((cap) => capabilities.includes(cap)) &&
    (rule.includes.arches?.includes(host.name) ?? true) &&
    !(rule.excludes.caps ?? []).some((cap) => capabilities.includes(cap)) &&
    !(rule.excludes.arches?.includes(host.name) ?? false)
  return {
    defaultAction: profile.defaultAction,
    ...(profile.defaultErrnoRet === undefined ? {} : { defaultErrnoRet: profile.defaultErrnoRet }),
    architectures: [host.seccomp, ...(family?.subArchitectures ?? [])],
    syscalls: profile.syscalls.filter(applies).map((rule) => ({
      names: rule.names,
      action: rule.action,
      ...(rule.args?.length ? { args: rule.args } : {}),
      ...(rule.errnoRet === undefined ? {} : { errnoRet: rule.errnoRet }),
    })),
  }
}
