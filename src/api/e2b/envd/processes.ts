// The processes that clients started in sandboxes, of this server's life: they end with it. Those that a long pause cut off
// are known by their ids (left-process.ts).

import { notFound } from '../../../contract/errors.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import { type LeftBehind, LeftProcess } from './left-process.ts'
import type { SandboxUsers } from './users.ts'
import { type Printed, SandboxProcess, type StartOptions } from './sandbox-process.ts'

export type Selector = { pid: number } | { tag: string }

export type Followed = SandboxProcess | LeftProcess

/** Of one sandbox, the newest; and sandboxes with any. */
const MAX_LEFT = 64
const MAX_SANDBOXES = 2000

export type SandboxProcesses = {
  /** Resolves once it has begun, with all that it prints until the signal aborts. */
  start: (
    call: SandboxCall,
    options: Omit<StartOptions, 'user'>,
    signal: AbortSignal,
  ) => Promise<{ process: SandboxProcess; output: AsyncIterable<Printed> }>
  /** Throws `not_found`. */
  find: (call: SandboxCall, selector: Selector) => Followed
  list: (unitId: string) => SandboxProcess[]
  left: (unitId: string) => LeftBehind[]
}

export function createSandboxProcesses(users: SandboxUsers): SandboxProcesses {
  const byUnit = new Map<string, Set<SandboxProcess>>()
  const cutOff = new Map<string, LeftBehind[]>()
  const left = (unitId: string) => cutOff.get(unitId) ?? []
  const list = (unitId: string) => [...(byUnit.get(unitId) ?? [])]
  return {
    start: async (call, options, signal) => {
      const { process, output } = await users.as(call, async (user) => {
        const started = new SandboxProcess(call, { ...options, user })
        const printed = started.attach(signal)
        await started.began
        return { process: started, output: printed }
      })
      const { unitId } = call
      const running = byUnit.get(unitId) ?? new Set()
      byUnit.set(unitId, running.add(process))
      void process.ended.then(({ kind }) => {
        running.delete(process)
        if (running.size === 0) byUnit.delete(unitId)
        if (kind === 'failed') keepNewest(cutOff, unitId, process)
      })
      return { process, output }
    },
    find: (call, selector) => {
      const { unitId } = call
      const isMeant = ({ pid, options }: LeftBehind) =>
        'pid' in selector ? pid === selector.pid : options.tag === selector.tag
      const found = list(unitId).find(isMeant)
      if (found) return found
      const cut = left(unitId).find(isMeant)
      if (cut) return new LeftProcess(call, cut)
      throw notFound('process', 'pid' in selector ? String(selector.pid) : selector.tag)
    },
    list,
    left,
  }
}

function keepNewest(
  cutOff: Map<string, LeftBehind[]>,
  unitId: string,
  { pid, options }: SandboxProcess,
): void {
  const others = (cutOff.get(unitId) ?? []).filter((each) => each.pid !== pid)
  cutOff.delete(unitId)
  cutOff.set(unitId, [...others, { pid, options }].slice(-MAX_LEFT))
  const [oldest] = cutOff.keys()
  if (cutOff.size > MAX_SANDBOXES && oldest !== undefined) cutOff.delete(oldest)
}
