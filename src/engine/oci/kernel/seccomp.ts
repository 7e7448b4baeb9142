// The system calls that a runc machine may make: Debian's default profile for containers
// (golang-github-containers-common), converted to the OCI runtime's format for our capabilities. It excludes what
// Debian's profile allows for nested containers: namespaces, mounts, keys, and interfaces that have been a way out of
// containers before (reliability I23). gVisor makes no system call of the machine on the host and needs none of this.
//
// Only the host's own architecture is allowed: the 32-bit entry points are kernel surface that hardly any image uses,
// and a filter for them costs every start and every exec 10 ms.

import { readFileSync } from 'node:fs'
import { arch } from 'node:os'
import { z } from 'zod'

export const SECCOMP_PROFILE = '/usr/share/containers/seccomp.json'

/** Allowed by the profile, refused here. */
const refusedByPurpose = {
  mounts: 'mount umount umount2 mount_setattr move_mount open_tree pivot_root fsopen fsconfig fsmount fspick',
  namespaces: 'unshare setns clone clone3',
  keys: 'add_key keyctl request_key',
  kernel: 'bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register lookup_dcookie',
  fileHandles: 'open_by_handle_at name_to_handle_at quotactl quotactl_fd',
  sockets: 'socket socketpair',
  requests: 'ioctl',
}
const refused = new Set(Object.values(refusedByPurpose).flatMap((names) => names.split(' ')))

/** Every flag of clone that makes a namespace (CLONE_NEWNS to CLONE_NEWNET and CLONE_NEWCGROUP). */
const NAMESPACE_FLAGS = 0x7e020000
const ENOSYS = 38

const AF_UNIX = 1
const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16
const NETLINK_ROUTE = 0
/** The error of a kernel without it: libraries then do without (the audit library accepts no other error). */
const EPROTONOSUPPORT = 93
const EAFNOSUPPORT = 97

/** Processes and threads, but no namespaces. clone3 hides its flags from a filter: libc falls back to clone. */
const cloneRules: Seccomp['syscalls'] = [
  {
    names: ['clone'],
    action: 'SCMP_ACT_ALLOW',
    args: [{ index: 0, value: NAMESPACE_FLAGS, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
  },
  { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
]

/**
 * The socket families that a program may use. Each family has a rule: libseccomp does not accept a range with
 * exceptions, and a call without a rule would look like a missing system call.
 */
const socketRules: Seccomp['syscalls'] = [
  ...[AF_UNIX, AF_INET, AF_INET6].map((family) => allow('socket', is(0, family))),
  allow('socket', is(0, AF_NETLINK), is(2, NETLINK_ROUTE)),
  refuse('socket', EPROTONOSUPPORT, is(0, AF_NETLINK), isNot(2, NETLINK_ROUTE)),
  ...Array.from({ length: AF_NETLINK }, (_, family) => family)
    .filter((family) => ![AF_UNIX, AF_INET, AF_INET6].includes(family))
    .map((family) => refuse('socket', EAFNOSUPPORT, is(0, family))),
  refuse('socket', EAFNOSUPPORT, { index: 0, value: AF_NETLINK, op: 'SCMP_CMP_GT' }),
  allow('socketpair', is(0, AF_UNIX)),
  refuse('socketpair', EAFNOSUPPORT, isNot(0, AF_UNIX)),
]

/** The second byte of a request's number identifies the driver or file system: this is btrfs. */
const BTRFS = 0x94
/**
 * Requests that share the bytes of one file with another, which any user may. Their numbers are btrfs's, where they
 * began.
 */
const CLONES = [0x40049409, 0x4020940d]

/**
 * Every request but those to btrfs, which a volume is: a unit would make subvolumes in it, beyond its limit and in the
 * way of its end. No rule says "other than", so there is one for each bit of the byte that may be another.
 */
const ioctlRules: Seccomp['syscalls'] = [
  ...Array.from({ length: 8 }, (_, bit) => {
    const mask = 1 << (8 + bit)
    return allow('ioctl', { index: 1, value: mask, valueTwo: mask & ~(BTRFS << 8), op: 'SCMP_CMP_MASKED_EQ' })
  }),
  ...CLONES.map((request) => allow('ioctl', is(1, request))),
]

type Condition = { index: number; value: number; valueTwo?: number; op: string }

function allow(name: string, ...args: Condition[]): Seccomp['syscalls'][number] {
  return { names: [name], action: 'SCMP_ACT_ALLOW', args }
}

function refuse(name: string, errnoRet: number, ...args: Condition[]): Seccomp['syscalls'][number] {
  return { names: [name], action: 'SCMP_ACT_ERRNO', errnoRet, args }
}

function is(index: number, value: number): Condition {
  return { index, value, op: 'SCMP_CMP_EQ' }
}

function isNot(index: number, value: number): Condition {
  return { index, value, op: 'SCMP_CMP_NE' }
}

const conditionSchema = z.object({
  caps: z.array(z.string()).optional(),
  arches: z.array(z.string()).optional(),
})

const profileSchema = z.object({
  defaultAction: z.string(),
  defaultErrnoRet: z.number().optional(),
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
  const applies = (rule: (typeof profile.syscalls)[number]) =>
    (rule.includes.caps ?? []).every((cap) => capabilities.includes(cap)) &&
    (rule.includes.arches?.includes(host.name) ?? true) &&
    !(rule.excludes.caps ?? []).some((cap) => capabilities.includes(cap)) &&
    !(rule.excludes.arches?.includes(host.name) ?? false)
  return {
    defaultAction: profile.defaultAction,
    ...(profile.defaultErrnoRet === undefined ? {} : { defaultErrnoRet: profile.defaultErrnoRet }),
    architectures: [host.seccomp],
    syscalls: [
      ...profile.syscalls
        .filter(applies)
        .map((rule) => ({
          names: rule.names.filter((name) => !refused.has(name)),
          action: rule.action,
          ...(rule.args?.length ? { args: rule.args } : {}),
          ...(rule.errnoRet === undefined ? {} : { errnoRet: rule.errnoRet }),
        }))
        .filter((rule) => rule.names.length > 0),
      ...cloneRules,
      ...ioctlRules,
      ...socketRules,
    ],
  }
}
