import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CAPABILITIES } from '../runtime/capabilities.ts'
import { loadSeccomp, SECCOMP_PROFILE } from './seccomp.ts'

describe('the seccomp profile', () => {
  it('is installed on the host', () => expect(existsSync(SECCOMP_PROFILE)).toBe(true))

  const { defaultAction, architectures, syscalls } = loadSeccomp(CAPABILITIES)
  const allowed = new Set(
    syscalls.filter((rule) => rule.action === 'SCMP_ACT_ALLOW' && !rule.args).flatMap((rule) => rule.names),
  )

  it('denies unlisted system calls and every foreign architecture', () => {
    expect(defaultAction).toBe('SCMP_ACT_ERRNO')
    expect(architectures).toHaveLength(1)
  })

  it('allows the system calls of ordinary programs', () => {
    for (const name of ['read', 'execve', 'openat', 'connect', 'futex', 'wait4'])
      expect(allowed).toContain(name)
  })

  it('denies system calls that need a capability that no machine has', () => {
    for (const name of [
      'mount',
      'unshare',
      'setns',
      'bpf',
      'init_module',
      'kexec_load',
      'open_by_handle_at',
    ]) {
      expect(allowed).not.toContain(name)
    }
  })

  it('allows fork, but not the creation of namespaces', () => {
    const clone = syscalls.filter((rule) => rule.names.includes('clone'))
    expect(clone).toHaveLength(1)
    expect(clone[0]?.args).toEqual([{ index: 0, value: 0x7e020000, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }])
    expect(allowed).not.toContain('clone3')
  })
})
