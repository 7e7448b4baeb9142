// The engine of this host behind its socket, which only the server's group can connect to.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openEpochs } from '../engine/epochs.ts'
import { openOciEngine } from '../engine/oci/oci-engine.ts'
import { runtimeOptions } from '../engine/oci/runtime/runtime.ts'
import { serveEngine } from '../engine/ipc/server.ts'
import { systemClock } from '../lib/clock.ts'
import { getAccount } from '../lib/system-users.ts'
import { fileFailpoints, noFailpoints } from '../lib/failpoints.ts'
import { lockFile } from '../lib/file-lock.ts'
import { type FleetIdentity, parseIdentity } from '../lib/fleet-identity.ts'
import { type EngineReady, engineSocketOf, RESOLVER_PORT } from './channel.ts'
import type { ProcessMain } from './run-process.ts'

export const engineProcess: ProcessMain = async ({ config, instance, runDir, stateDir, log, progress }) => {
  // One engine per data directory, even if the supervisor lost track of an engine that hangs in the kernel.
  const lock = await lockFile(join(config.dataDir, 'engine.lock'))
  if ('owner' in lock)
    throw new Error(`Another engine (process ${lock.owner}) uses ${config.dataDir}: end it first.`)
  progress('Preparing the disk pool, the network and the isolation classes')
  const { gid } = await getAccount('berth')
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
    imageUpkeep: config.images,
    registryMirrors: config.registryMirrors,
    registryAuthFile: config.registryAuthFile,
    upstreamProxy: config.registryProxy,
    onProgress: progress,
    resolverPort: RESOLVER_PORT,
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
  const { defaultClass, defaultReason } = await engine.capabilities()
  const result: EngineReady = { isolation: defaultClass, reason: defaultReason }
  return {
    result,
    stop: async () => {
      await socket.close()
      await engine.close()
      await lock.file.close()
    },
  }
}

/** Throws a sentence for the operator. */
async function readIdentity({ certificateFile }: { certificateFile: string }): Promise<FleetIdentity> {
  try {
    return parseIdentity(await readFile(certificateFile, 'utf8'))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(
      `BERTH_ENGINE_CERTIFICATE names a file of "npm run hosts -- certificate", and ${certificateFile} is none: ${why}`,
      { cause },
    )
  }
}
