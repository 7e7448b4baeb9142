// The processes that clients started in sandboxes, of this server's life: they end with it.

import { notFound } from '../../../contract/errors.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import type { SandboxUsers } from './users.ts'
import { type Printed, SandboxProcess, type StartOptions } from './sandbox-process.ts'

export type Selector = { pid: number } | { tag: string }

export type SandboxProcesses = {
  /** Resolves once it has begun, with all that it prints until the signal aborts. */
  start: (
    call: SandboxCall,
    options: Omit<StartOptions, 'user' | 'homeOf'>,
    signal: AbortSignal,
  ) => Promise<{ process: SandboxProcess; output: AsyncIterable<Printed> }>
  /** Throws `not_found`. */
  find: (unitId: string, selector: Selector) => SandboxProcess
  list: (unitId: string) => SandboxProcess[]
}

export function createSandboxProcesses(users: SandboxUsers): SandboxProcesses {
  const byUnit = new Map<string, Set<SandboxProcess>>()
  const list = (unitId: string) => [...(byUnit.get(unitId) ?? [])]
  return {
    start: async (call, options, signal) => {
      const { process, output } = await users.as(call, async (user) => {
        const homeOf = async () => (await users.of(call, call.user)).home
        const started = new SandboxProcess(call, { ...options, user, homeOf })
        const printed = started.attach(signal)
        await started.began
        return { process: started, output: printed }
      })
      const { unitId } = call
      const running = byUnit.get(unitId) ?? new Set()
      byUnit.set(unitId, running.add(process))
      void process.ended.then(() => {
        running.delete(process)
        if (running.size === 0) byUnit.delete(unitId)
      })
      return { process, output }
    },
    find: (unitId, selector) => {
      const found = list(unitId).find((process) =>
        'pid' in selector ? process.pid === selector.pid : process.options.tag === selector.tag,
      )
      if (!found) {
        const named = 'pid' in selector ? String(selector.pid) : selector.tag
        throw notFound('process', named)
      }
      return found
    },
    list,
  }
}
