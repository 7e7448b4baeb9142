// The engine of this host behind its socket, which only the server's group can connect to.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { openEpochs } from '../engine/epochs.ts'
import { openOciEngine } from '../engine/oci/oci-engine.ts'
import { runtimeOptions } from '../engine/oci/runtime/runtime.ts'
import { type ServedEngine, serveEngine } from '../engine/ipc/server.ts'
import { SECOND, systemClock } from '../lib/clock.ts'
import { getAccount } from '../lib/system-users.ts'
import { fileFailpoints, noFailpoints } from '../lib/failpoints.ts'
import type { Log } from '../lib/log.ts'
import { runLoop } from '../lib/loop.ts'
import { lockFile } from '../lib/file-lock.ts'
import { type FleetIdentity, parseIdentity } from '../lib/fleet-identity.ts'
import { EGRESS_PORTS, egressSocketsOf, type EngineReady, engineSocketOf, RESOLVER_PORT } from './channel.ts'
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
    runtimes: runtimeOptions(config),
    readyMachines: { perKind: config.readyMachines, memoryReserveMb: config.memoryReserveMb },
    failpoints: config.failpoints ? fileFailpoints(join(stateDir, 'failpoints')) : noFailpoints,
  })
  const epochs = await openEpochs(join(config.dataDir, 'engine.epoch'))
  const socket = await serveEngine({
    engine,
    epochs,
    socketPath: engineSocketOf(runDir),
    socketGid: gid,
    tls: config.engineTls && { ...config.engineTls, identity: await readIdentity(config.engineTls) },
    log,
  })
  const stopping = new AbortController()
  const following = followIdentity(config.engineTls, socket, { log, signal: stopping.signal })
  const { defaultClass, defaultReason } = await engine.capabilities()
  const result: EngineReady = { isolation: defaultClass, reason: defaultReason }
  return {
    result,
    stop: async () => {
      stopping.abort()
      await following
      await socket.close()
      await engine.close()
      await lock.file.close()
    },
  }
}

const LOOK_EVERY_MS = 10 * SECOND

/** A renewed certificate is used without a restart. */
async function followIdentity(
  settings: Config['engineTls'],
  { tls }: ServedEngine,
  { log, signal }: { log: Log; signal: AbortSignal },
): Promise<void> {
  if (!settings || !tls) return
  let shown = await readIdentity(settings)
  const run = async () => {
    const found = await readIdentity(settings)
    if (found.certificate === shown.certificate) return
    tls.show(found)
    shown = found
    log.info({}, 'new engine certificate in use')
  }
  const loop = { name: 'engine certificate', everyMs: LOOK_EVERY_MS, timeoutMs: 10 * SECOND, run }
  await runLoop(loop, { clock: systemClock, log, signal })
}

/** Throws a sentence for the operator. */
async function readIdentity({ certificateFile }: { certificateFile: string }): Promise<FleetIdentity> {
  try {
    return parseIdentity(await readFile(certificateFile, 'utf8'))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(
      `BERTH_ENGINE_CERTIFICATE names a file of "npm run hosts -- join", and ${certificateFile} is none: ${why}`,
      { cause },
    )
  }
}
