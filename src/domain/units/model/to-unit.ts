// A unit, as answers show it (spec 2.1).

import type { App } from '../../../app.ts'
import type { Unit } from '../../../contract/unit.ts'
import { toCents } from '../../../lib/money.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { portWithoutSni, urlOf } from '../../endpoints/address.ts'
import { showMemory } from './memory.ts'
import { internalHost } from './names.ts'
import { progressOf } from './progress.ts'

export function toUnit(
  app: Pick<App, 'config' | 'gateways' | 'secretKey' | 'capabilities' | 'fleet' | 'creations'>,
  unit: UnitRecord,
): Unit {
  return {
    id: unit.id,
    teamId: unit.teamId,
    stackId: unit.stackId,
    name: unit.name,
    image: unit.image,
    cmd: unit.spec.cmd,
    entrypoint: unit.spec.entrypoint,
    size: unit.size,
    state: unit.state,
    internalHost: internalHost(unit.name, unit.stackName),
    endpoints: unit.endpoints.map((endpoint) => ({
      id: endpoint.id,
      port: endpoint.port,
      protocol: endpoint.protocol,
      mode: endpoint.mode,
      url: urlOf(app, unit, endpoint),
      ...portWithoutSni(app, unit, endpoint),
    })),
    ports: unit.spec.ports,
    databasePorts: unit.spec.databasePorts,
    expose: unit.spec.expose,
    env: unit.spec.env,
    volume: unit.spec.volume,
    healthcheck: unit.spec.healthcheck,
    createdAt: unit.createdAt.toISOString(),
    startedAt: unit.startedAt?.toISOString() ?? null,
    sleep: unit.sleep,
    sleepsAt: unit.sleepsAt?.toISOString() ?? null,
    lastUsedAt: unit.lastUsedAt?.toISOString() ?? null,
    costCentsSoFar: toCents(unit.costNanoCents),
    error: unit.error,
    destroysAt: unit.destroysAt?.toISOString() ?? null,
    stoppedReason: unit.stoppedReason,
    lastExit: unit.lastExit,
    files: unit.spec.files,
    forkedFrom: unit.forkedFrom,
    copied: unit.copied,
    createdBy: unit.createdBy,
    memory: showMemory(app, unit),
    progress: progressOf(app, unit),
    host: { id: unit.hostId, region: app.fleet.find(unit.hostId)?.region ?? null },
    egress: { ...unit.egress, version: unit.egressVersion },
    nested: unit.spec.nested === true,
    runtime: unit.runtime,
    metadata: unit.metadata,
    timeToLive: unit.timeToLive,
    atEnd: unit.atEnd,
    endsAt: unit.endsAt?.toISOString() ?? null,
  }
}
