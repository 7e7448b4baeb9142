// Finds out whether sandboxes of gVisor can use hardware virtualization, and whether they are quicker with it. That /dev/kvm
// is there says nothing: a paravirtual one takes every call, and a sandbox on it hangs for ever.

import { existsSync, readFileSync } from 'node:fs'
import type { Paths } from '../paths.ts'
import type { Driver } from '../runtime/driver.ts'
import { runProbe } from './probing.ts'

const DEVICE = '/dev/kvm'
const DEADLINE_MS = 10_000
/** Starts programs, which is what sandboxes are slowest at. */
const BUSYBOX = '/helper/busybox'
const SCRIPT = `i=0; while [ $i -lt 100 ]; do ${BUSYBOX} true; i=$((i + 1)); done`
/** Virtualization must gain this much: otherwise the platform that is known to work here is better. */
const QUICKER = 0.9

/** `ms`: how long the same work takes on each platform. */
export type KvmFinding =
  | { kind: 'absent' }
  | { kind: 'fails'; said: string }
  | { kind: 'works'; ms: { kvm: number; systrap: number }; isQuicker: boolean }

/** Whether the processor itself can virtualize. A paravirtual /dev/kvm is there without. */
export function hasVirtualization(): boolean {
  return existsSync(DEVICE) && /^flags\s*:.*\b(?:vmx|svm)\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'))
}

/** Runs the same in a sandbox of each driver. */
export async function probeKvm(
  paths: Paths,
  drivers: { kvm: Driver; systrap: Driver },
  instanceId: string,
): Promise<KvmFinding> {
  if (!existsSync(DEVICE)) return { kind: 'absent' }
  const kvm = await timeSandbox(paths, drivers.kvm, instanceId)
  if (typeof kvm === 'string') return { kind: 'fails', said: kvm }
  const systrap = await timeSandbox(paths, drivers.systrap, instanceId)
  if (typeof systrap === 'string') return { kind: 'fails', said: systrap }
  return { kind: 'works', ms: { kvm, systrap }, isQuicker: kvm < QUICKER * systrap }
}

/** Milliseconds, or what went wrong. */
async function timeSandbox(paths: Paths, driver: Driver, instanceId: string): Promise<number | string> {
  const asked = { name: 'platform', args: [BUSYBOX, 'sh', '-e', '-c', SCRIPT], timeoutMs: DEADLINE_MS }
  const { exitCode, timedOut, stderr, ms } = await runProbe(paths, driver, instanceId, asked)
  if (exitCode === 0) return ms
  return timedOut ? `it did not answer within ${DEADLINE_MS / 1000} s` : stderr.trim().slice(-200)
}
