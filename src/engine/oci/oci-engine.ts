// The engine of this host: it runs OCI runtimes directly, without a daemon. Each operation has its file; this one
// passes each call to its operation.

import { createKeyedLock } from '../../lib/concurrency/keyed-lock.ts'
import type { Engine, MachineStatus } from '../engine.ts'
import { putAside, startRemovingAside } from './lifecycle/aside.ts'
import { readCapacity } from './kernel/capacity.ts'
import { watchTeamWeights } from './kernel/team-weights.ts'
import { createMachine } from './lifecycle/create.ts'
import { readArchiveInMachine, writeArchiveInMachine } from './exec/archives.ts'
import { listDirectoryInMachine, removeFileInMachine, statInMachine } from './exec/directories.ts'
import { makeDirectoryInMachine, moveFileInMachine } from './exec/places.ts'
import { asUser } from './exec/as-user.ts'
import { execInMachine } from './exec/exec.ts'
import { openLoopback } from './exec/loopback.ts'
import { listTasks, signalTask } from './exec/tasks.ts'
import { terminalInMachine } from './exec/terminal.ts'
import { watchRuns } from './lifecycle/exits.ts'
import {
  readFileInMachine,
  receiveFileInMachine,
  sendFileOfMachine,
  writeFileInMachine,
} from './exec/files.ts'
import { forkMachines } from './snapshot/fork.ts'
import { freezeMachine, thawMachine } from './lifecycle/freeze.ts'
import { restrictMachine } from './egress.ts'
import { getMachine, statusOf, type EngineContext } from './machine/context.ts'
import { followLogs, readLogs } from './logs/logs.ts'
import {
  followProcess,
  forgetProcess,
  keepProcessAwake,
  listProcesses,
  readProcess,
  signalProcess,
} from './processes/processes.ts'
import { writeProcess } from './processes/input.ts'
import { startProcess } from './processes/start.ts'
import { watchPool } from './lifecycle/pool-watch.ts'
import { readSpace, refuseUnwritable } from './storage/pool.ts'
import { buildForNewRuns } from './lifecycle/build-for-new-runs.ts'
import { readMetrics } from './lifecycle/metrics.ts'
import { recoverMachines } from './lifecycle/recover.ts'
import { startMachine } from './lifecycle/start.ts'
import { destroyMachine, stopMachine } from './lifecycle/stop.ts'
import { suspendMachine } from './lifecycle/suspend.ts'
import { watchTraffic } from './traffic.ts'
import { watchFilesInMachine } from './exec/watch-files.ts'
import { closeHost, type OciOptions, openHost } from './host.ts'

export type { OciOptions } from './host.ts'

export type OciEngine = Engine & {
  /** Leaves machines running. If there are none, removes everything of the instance from the host. */
  close(): Promise<void>
}

export async function openOciEngine(options: OciOptions): Promise<OciEngine> {
  const host = await openHost(options)
  const { images, network } = host
  const logTurns = createKeyedLock()
  const watcher = watchRuns(host)
  const removing = startRemovingAside(host, options.asideKeptMs ?? null)
  const pool = watchPool(host, options.poolSpace)
  const weights = watchTeamWeights(host, () =>
    [...host.machines.values()].map(({ record }) => record.spec.networkGroup),
  )
  host.ready.begin()
  const building = options.runscBuild ? buildForNewRuns(host, options.runscBuild, options.onProgress) : null

  return {
    capabilities: async () => host.capabilities,
    capacity: async () => {
      refuseUnwritable(host.paths)
      const disk = await readSpace(host.paths)
      return await readCapacity({ ...host, disk, subnet: options.instance.subnet })
    },
    renew: async () => null,
    pull: (reference, waiter) => images.pull(reference, waiter),
    create: (machine) => createMachine(host, machine),
    start: (ref, run) => startMachine(host, ref, run),
    stop: (ref, graceMs) => stopMachine(host, ref, graceMs),
    suspend: (ref, graceMs) => suspendMachine(host, ref, graceMs),
    fork: (forks) => forkMachines(host, forks),
    freeze: (ref) => freezeMachine(host, ref),
    thaw: (ref) => thawMachine(host, ref),
    destroy: async (id) => {
      images.giveUp(id)
      await destroyMachine(host, id)
    },
    restrict: (ref, egress) => restrictMachine(host, ref, egress),
    putAside: (id) => putAside(host, id, 'unknown'),
    metrics: (id) => readMetrics(host, id),
    list: async () => [...host.machines.values()].map(statusOf),
    exec: async (ref, request, onOutput, signal) =>
      await execInMachine(host, ref, await asUser(host, ref, request), onOutput, signal),
    terminal: (ref, request, input, onOutput, signal, onBegun) =>
      terminalInMachine(host, ref, request, input, onOutput, signal, onBegun),
    tasks: (ref) => listTasks(host, ref),
    signalTask: (ref, pid, signal) => signalTask(host, ref, pid, signal),
    openLoopback: (ref, port) => openLoopback(host, ref, port),
    startProcess: (ref, request) => startProcess(host, ref, request),
    processes: async (id) => listProcesses(host, id),
    processOutput: (id, process, after, maxBytes) => readProcess(host, id, process, after, maxBytes),
    followProcess: (id, process, after, signal) => followProcess(host, id, process, after, signal),
    signalProcess: (ref, process, signal) => signalProcess(host, ref, process, signal),
    writeProcess: (ref, process, data, end) => writeProcess(host, ref, process, data, end),
    keepProcessAwake: (id, process, until) => keepProcessAwake(host, id, process, until),
    forgetProcess: (id, process) => forgetProcess(host, id, process),
    writeFile: (ref, path, content, owner) => writeFileInMachine(host, ref, path, content, owner),
    receiveFile: (ref, path, pieces, owner, signal) =>
      receiveFileInMachine(host, ref, path, pieces, owner, signal),
    readFile: (ref, path, maxBytes, user) => readFileInMachine(host, ref, path, maxBytes, user),
    sendFile: (ref, path, onMode, onData, signal, user) =>
      sendFileOfMachine(host, ref, path, onMode, onData, signal, user),
    statFile: (ref, path, user) => statInMachine(host, ref, path, user),
    makeDirectory: (ref, path, owner) => makeDirectoryInMachine(host, ref, path, owner),
    moveFile: (ref, from, to, user) => moveFileInMachine(host, ref, from, to, user),
    listDirectory: (ref, path, depth, user) => listDirectoryInMachine(host, ref, path, depth, user),
    removeFile: (ref, path, recursive) => removeFileInMachine(host, ref, path, recursive),
    watchFiles: (ref, path, recursive, told, signal) =>
      watchFilesInMachine(host, ref, path, recursive, told, signal),
    readArchive: (ref, path, onData, signal, user) =>
      readArchiveInMachine(host, ref, path, onData, signal, user),
    writeArchive: (ref, path, pieces, signal, keep) =>
      writeArchiveInMachine(host, ref, path, pieces, signal, keep),
    logs: async (id, query) => {
      // One at a time per team: however many reads one team makes, another waits for at most one of them.
      const { networkGroup } = getMachine(host, id).record.spec
      return await logTurns(`${networkGroup}`, () => readLogs(host, id, query))
    },
    followLogs: (id, after, signal) => {
      getMachine(host, id)
      return followLogs(host, id, after, signal)
    },
    watchExits: (onExit, signal) => watchExits(host, onExit, signal),
    watchProcesses: async (onEnd, signal) => {
      host.events.on('processEnded', onEnd)
      await untilAborted(signal)
      host.events.off('processEnded', onEnd)
    },
    watchTraffic: (onTraffic, signal) => watchTraffic(host, onTraffic, signal),
    watchEgress: (onSeen, signal) => network.watchSeen(onSeen, signal),
    watchPulls: (onPulls, signal) => images.watchPulls(onPulls, signal),
    recover: (wanted) => recoverMachines(host, wanted),
    close: async () => {
      await building?.stop()
      await removing.stop()
      await pool.close()
      await weights.close()
      await host.ready.close()
      await closeHost(host, watcher)
    },
  }
}

async function watchExits(
  host: EngineContext,
  onExit: (status: MachineStatus) => void,
  signal: AbortSignal,
): Promise<void> {
  host.events.on('ended', onExit)
  try {
    for (const machine of host.machines.values()) {
      const status = statusOf(machine)
      if (status.state === 'exited' || status.state === 'lost') onExit(status)
    }
    await untilAborted(signal)
  } finally {
    host.events.off('ended', onExit)
  }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}
