// Whether the units of a create may be, as their team, their host and their bounds allow (reserve.ts).

import type { App } from '../../../app.ts'
import { teamSecretsOf } from '../../../contract/env.ts'
import { validation } from '../../../contract/errors.ts'
import type { UnitSpec } from '../../../contract/unit-spec.ts'
import type { IsolationClass } from '../../../engine/engine.ts'
import type { FleetHost } from '../../../engine/fleet.ts'
import { learnCapabilities } from '../../hosts/capabilities.ts'
import { type EffectivePolicy, checkUnit, defaultSleep } from '../../policies/check.ts'
import { askedEgress, checkTogether } from '../../policies/egress.ts'
import { registryOf } from './effective-policy.ts'
import { checkVolumes } from './disk-limits.ts'
import { engineAway } from '../lifecycle/failures.ts'
import type { PlannedUnit } from '../model/plan.ts'

export async function checkHostVolumes(
  app: App,
  { engine }: FleetHost,
  teamId: string,
  wanted: UnitSpec[],
): Promise<void> {
  if (wanted.every(({ volume }) => volume === undefined)) return
  // If the engine does not answer now, it refuses by itself when it makes the machine.
  const capacity = await engine.capacity().catch(() => null)
  if (capacity) checkVolumes(app, { teamId }, { wanted, teamDiskGb: capacity.teamDiskGb })
}

/** The host's default class. Throws `validation` for units in which containers are to run, where that class has none such. */
export async function classFor(app: App, host: FleetHost, wanted: UnitSpec[]): Promise<IsolationClass> {
  const { defaultClass, classes } = await learnCapabilities(app, host).catch((error: unknown) => {
    throw engineAway(error)
  })
  if (wanted.some(({ nested }) => nested)) {
    const able = classes.find((each) => each.class === defaultClass)?.nested
    if (!able?.available) throw cannotNest(able?.detail ?? 'its version of Berth knows no such units')
  }
  return defaultClass
}

function cannotNest(why: string): Error {
  const message = `is not possible on the host of this team: ${why}; leave it out, or ask the operator for a current runsc and the isolation class gvisor`
  return validation([{ path: 'spec.nested', message }])
}

export function checkPlanned(app: App, bounds: EffectivePolicy, planned: PlannedUnit[]): void {
  for (const { spec } of planned) {
    const registry = registryOf(spec.image)
    const egress = askedEgress(bounds, spec.egress)
    const teamSecrets = teamSecretsOf(spec.env)
    const sleep = sleepOf(app, bounds, spec)
    checkUnit(bounds, { size: spec.size, registry, sleep, egress, teamSecrets, nested: spec.nested })
    if (planned.length > 1) checkTogether(bounds, egress, spec.egress)
  }
}

export function sleepOf(app: App, bounds: EffectivePolicy, spec: UnitSpec): string {
  return spec.sleep ?? defaultSleep(bounds, app.config.sleepDefault)
}
