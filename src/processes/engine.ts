// The engine of this host behind its socket, which only the server's group can connect to.

import { join } from 'node:path'
import type { Config } from '../config.ts'
import { openEpochs } from '../engine/epochs.ts'
import { openOciEngine } from '../engine/oci/oci-engine.ts'
import { driverOptions } from '../engine/oci/runtime/driver.ts'
import { serveEngine } from '../engine/ipc/server.ts'
import { withGateway } from '../engine/with-gateway.ts'
import { openHostRenewal } from '../certificates/host-renewal.ts'
import { HOUR, MINUTE, systemClock } from '../lib/clock.ts'
import { getAccount } from '../lib/system-users.ts'
import { fileFailpoints, noFailpoints } from '../lib/failpoints.ts'
import type { Log } from '../lib/log.ts'
import { lockFile } from '../lib/file-lock.ts'
import { runLoop } from '../lib/loop.ts'
import {
  EGRESS_PORTS,
  egressSocketsOf,
  type EngineReady,
  engineSocketOf,
  hostIdentitiesIn,
  RESOLVER_PORT,
} from './channel.ts'
import { type FollowedIdentity, followIdentity } from './identity.ts'
import type { ProcessMain } from './run-process.ts'

export const engineProcess: ProcessMain = async ({
  config,
  instance,
  runDir,
  stateDir,
  log,
  progress,
  needs,
}) => {
  // One engine per data directory, even if the supervisor lost track of an engine that hangs in the kernel.
  const lock = await lockFile(join(config.dataDir, 'engine.lock'))
  if ('owner' in lock)
    throw new Error(`Another engine (process ${lock.owner}) uses ${config.dataDir}: end it first.`)
  progress('Preparing the disk pool, the network and the isolation classes')
  const { gid } = await getAccount('berth')
  const [egress, gateway] = await Promise.all([getAccount('berth-egress'), getAccount('berth-gateway')])
  const sockets = egressSocketsOf(runDir)
  const engine = await openOciEngine({
    instance,
    dataDir: config.dataDir,
    imagesDir: config.imagesDir,
    runDir,
    isolation: config.isolation,
    poolGb: config.poolGb,
    reserveGb: config.reserveGb,
    asideKeptMs: config.asideKeptMs,
    poolSpace: config.poolSpace,
    teamDiskPercent: config.teamDiskPercent,
    imageMaintenance: config.images,
    registryMirrors: config.registryMirrors,
    registryAuthFile: config.registryAuthFile,
    upstreamProxy: config.registryProxy,
    onProgress: progress,
    resolverPort: RESOLVER_PORT,
    egress: {
      ports: EGRESS_PORTS,
      gid: egress.gid,
      sockets: {
        rules: { path: sockets.rules, gid: egress.gid },
        names: { path: sockets.names, gid: gateway.gid },
      },
      onNeeded: () => needs('egress'),
    },
    log,
    clock: systemClock,
    runtimes: driverOptions(config),
    runscBuild: config.runscBuild,
    readyMachines: { perKind: config.readyMachines, memoryReserveMb: config.memoryReserveMb },
    failpoints: config.failpoints ? fileFailpoints(join(stateDir, 'failpoints')) : noFailpoints,
  })
  const identity = config.engineTls && (await openEngineIdentity(config.engineTls, log))
  const epochs = await openEpochs(join(config.dataDir, 'engine.epoch'))
  const renewal = config.role === 'host' && config.engineTls ? openRenewal(config, instance.id, log) : null
  const socket = await serveEngine({
    engine: renewal ? withGateway({ ...engine, renew: renewal.renew }, config) : engine,
    epochs,
    socketPath: engineSocketOf(runDir),
    socketGid: gid,
    tls: config.engineTls && identity && { ...config.engineTls, identity: identity.current() },
    log,
  })
  identity?.onRenewed((renewed) => socket.tls?.show(renewed))
  const { defaultClass, defaultReason } = await engine.capabilities()
  const result: EngineReady = { isolation: defaultClass, reason: defaultReason }
  return {
    result,
    stop: async () => {
      await renewal?.stop()
      await identity?.stop()
      await socket.close()
      await engine.close()
      await lock.release()
    },
  }
}

/** A host's own certificates, of which the server hears over the engine. */
function openRenewal({ dataDir }: Config, instance: string, log: Log) {
  const clock = systemClock
  const { renew, tell } = openHostRenewal({ files: hostIdentitiesIn(dataDir), instance, clock, log })
  const stopping = new AbortController()
  const loop = { name: 'certificates of this host', everyMs: HOUR, timeoutMs: MINUTE, run: tell }
  const telling = runLoop(loop, { clock, log, signal: stopping.signal })
  const stop = async () => {
    stopping.abort()
    await telling
  }
  return { renew, stop }
}

/** Throws a sentence for the operator. */
async function openEngineIdentity(
  { certificateFile }: NonNullable<Config['engineTls']>,
  log: Log,
): Promise<FollowedIdentity> {
  return await followIdentity(certificateFile, { log, clock: systemClock }).catch((cause: Error) => {
    throw new Error(
      `BERTH_ENGINE_CERTIFICATE names a file of "npm run hosts -- certificate", and ${certificateFile} is none: ${cause.message}`,
      { cause },
    )
  })
}
