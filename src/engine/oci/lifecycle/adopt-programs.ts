// At the start of an engine: the drivers of runs that earlier engines began, and of saved memory, with the programs that those
// were started with. What nothing of that needs any more is removed.

import { existsSync } from 'node:fs'
import type { EngineContext } from '../machine/context.ts'
import { LEGACY_PROGRAM } from '../machine/context.ts'
import type { MachineRecord } from '../records/record.ts'
import { forgetPrograms } from '../runtime/kept-programs.ts'
import { gvisorDriversOf, systemDriver } from '../probes/gvisor.ts'
import { traitsOf } from '../traits.ts'

export async function adoptPrograms(host: EngineContext, records: MachineRecord[]): Promise<void> {
  const { paths, drivers, driverOptions, programs } = host
  const running = records.filter(({ state }) => state === 'running')
  const saved = records.filter(({ spec }) => existsSync(paths.machine(spec.id).memory))
  const named = [...running, ...saved].flatMap(({ program }) => program ?? [])
  for (const [name, driver] of await gvisorDriversOf(paths, [...new Set(named)], driverOptions))
    programs.set(name, driver)
  // Earlier versions knew one program only.
  const isLegacy = ({ program, spec }: MachineRecord) => program === undefined && !traitsOf(spec).sharesKernel
  if (driverOptions.runsc === null && running.some(isLegacy)) {
    const legacy = await systemDriver(paths, host.instanceId, driverOptions)
    if (legacy) programs.set(LEGACY_PROGRAM, legacy)
  }
  // Files that an earlier monitor runs from may go: it has them open.
  const used = [...drivers.values(), ...programs.values(), host.monitor]
  const needed = used.flatMap(({ program }) => program ?? [])
  await forgetPrograms(paths.programs, new Set(needed))
}
