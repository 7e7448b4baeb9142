// Finds out what this host can run: each class runs a trivial container once at start-up, and if memory can be kept,
// one is checkpointed and restored (probes/memory.ts).

import type { Capabilities, ClassCapability, IsolationClass } from '../../engine.ts'
import { isolationClasses } from '../../engine.ts'
import type { Paths } from '../paths.ts'
import { type Driver, driverDefaults, type DriverOptions } from '../runtime/driver.ts'
import { probeGvisor } from './gvisor.ts'
import { probeRunc } from './runc.ts'

export type Probe = { drivers: Map<IsolationClass, Driver>; capabilities: Capabilities }

const probes = [probeGvisor, probeRunc]

export async function probeClasses(
  paths: Paths,
  instanceId: string,
  asked: 'auto' | IsolationClass,
  options: DriverOptions = driverDefaults,
): Promise<Probe> {
  const drivers = new Map<IsolationClass, Driver>()
  const classes: ClassCapability[] = []
  const probed = probes.map((probe) => probe(paths, instanceId, options))
  for (const { capability, driver } of await Promise.all(probed)) {
    if (driver) {
      drivers.set(capability.class, driver)
      const { why } = driver.nested
      classes.push({ ...capability, nested: { available: why === null, detail: why ?? capability.detail } })
    } else classes.push(capability)
  }
  return {
    drivers,
    capabilities: { classes, ...chooseDefault(classes, asked), egress: true, brokersSecrets: true },
  }
}

/** Throws a sentence that says what to install if the requested class, or any, is unavailable. */
export function chooseDefault(
  classes: ClassCapability[],
  asked: 'auto' | IsolationClass,
): Pick<Capabilities, 'defaultClass' | 'defaultReason'> {
  const wanted = asked === 'auto' ? isolationClasses : [asked]
  const chosen = wanted.map((name) => classes.find((one) => one.class === name)).find((one) => one?.available)
  if (!chosen) {
    const why = classes.map((one) => `${one.class}: ${one.detail}`).join('; ')
    throw new Error(`No isolation class is available (BERTH_ISOLATION=${asked}). ${why}`)
  }
  const reason =
    asked !== 'auto'
      ? `set by BERTH_ISOLATION (${chosen.detail})`
      : chosen.class === 'gvisor'
        ? `${chosen.detail} passed its start-up probe, and it is the safer one for untrusted code`
        : `gVisor is not available (${classes.find((one) => one.class === 'gvisor')?.detail ?? ''})`
  return { defaultClass: chosen.class, defaultReason: reason }
}
