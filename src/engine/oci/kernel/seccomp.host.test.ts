import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CAPABILITIES } from '../runtime/capabilities.ts'
import { loadSeccomp, SECCOMP_PROFILE } from './seccomp.ts'

describe('the seccomp profile', () => {
  it('is on the host', () => expect(existsSync(SECCOMP_PROFILE)).toBe(true))

  const { defaultAction, architectures, syscalls } = loadSeccomp(CAPABILITIES)
  const allowed = new Set(
    syscalls.filter((rule) => rule.action === 'SCMP_ACT_ALLOW' && !rule.args).flatMap((rule) => rule.names),
  )

  it('refuses what it does not name, and every foreign architecture', () => {
    expect(defaultAction).toBe('SCMP_ACT_ERRNO')
    expect(architectures).toHaveLength(1)
  })

  it('lets ordinary programs work', () => {
    for (const name of ['read', 'execve', 'openat', 'connect', 'futex', 'wait4'])
      expect(allowed).toContain(name)
  })

  it('keeps what needs a power no machine has from being tried', () => {
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

  it('lets a program fork, but make no namespace', () => {
    const clone = syscalls.filter((rule) => rule.names.includes('clone'))
    expect(clone).toHaveLength(1)
    expect(clone[0]?.args).toEqual([{ index: 0, value: 0x7e020000, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }])
    expect(allowed).not.toContain('clone3')
  })
})
