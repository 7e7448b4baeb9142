// A machine that is smaller than one CPU has a whole one while it starts: until its process has been told to go or, if
// it is probed, until it is ready (decisions/processor.md).

import type { EngineContext, Machine } from './context.ts'
import { setCpuQuota } from '../kernel/cgroups.ts'
import { cpuQuota } from '../runtime/bundle.ts'

/** A start that takes longer goes on with the machine's own CPU. */
const STARTUP_MS = 30_000

/** Lets the run keep the CPU of its start until `endStartup`. Of a run that has ended since, nothing is left to change. */
export function prolongStartup(host: EngineContext, machine: Machine): void {
  const { generation } = machine.record
  setTimeout(() => endStartup(host, machine, generation), STARTUP_MS).unref()
}

/** From now on, the run of this generation has the CPU of the machine's size. */
export function endStartup(host: EngineContext, { record }: Machine, generation: number): void {
  const { container } = host.paths.run(record.spec.id, generation)
  setCpuQuota(host.cgroups, container, cpuQuota(record.spec.size.cpus))
}
