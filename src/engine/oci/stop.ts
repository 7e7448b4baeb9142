// Ends runs and machines. Both are legal whatever state a machine is in, and neither waits on a runtime
// that does not answer: what does not end is killed by its cgroup.

import { rm } from 'node:fs/promises'
import type { MachineRef } from '../engine.ts'
import { EngineError } from '../errors.ts'
import { killAll, listCgroups, thawGroup } from './cgroups.ts'
import { destroyDisk } from './disks.ts'
import { settleEnd } from './exits.ts'
import { getMachine, getRuntime, type Host, type Machine } from './host.ts'
import { signalContainer } from './runtime.ts'
import { takeBack } from './remains.ts'

const KILL_WAIT_MS = 10_000

export function stopMachine(host: Host, ref: MachineRef, graceMs: number): Promise<void> {
  return host.lock(ref.id, async () => {
    const machine = getMachine(host, ref.id)
    const { record } = machine
    if (record.generation !== ref.generation || record.state !== 'running') {
      await machine.cleanup
      return
    }
    const { container } = host.paths.run(ref.id, ref.generation)
    machine.ending = true
    const runtime = getRuntime(host, record.spec.isolation)
    // Asked and timed side by side: a runtime that hangs must not lengthen the grace.
    if (graceMs > 0) {
      thawGroup(host.cgroups, container)
      machine.frozen = false
      void signalContainer(runtime, container, 'TERM').catch(() => undefined)
      await endedWithin(host, machine, graceMs)
    }
    await endRun(host, machine)
    await machine.cleanup
  })
}

export async function destroyMachine(host: Host, id: string): Promise<void> {
  const doomed = host.machines.get(id)
  if (doomed) doomed.ending = true
  // Before the lock: a start that hangs in it ends as soon as its processes do.
  await killRunsOf(host, id)
  await host.lock(id, async () => {
    const machine = host.machines.get(id)
    if (machine) {
      await endRun(host, machine)
      await machine.cleanup
      const runtime = host.runtimes.get(machine.record.spec.isolation)
      const paths = host.paths.run(id, machine.record.generation)
      if (runtime && machine.record.generation > 0) await takeBack(host, runtime, paths)
    }
    await host.network.release(id)
    await destroyDisk(host.paths, id)
    await rm(host.paths.machine(id).dir, { recursive: true, force: true })
    host.machines.delete(id)
  })
}

/** Kills what still runs of the machine. Call it with the machine locked. */
export async function endRun(host: Host, machine: Machine): Promise<void> {
  if (machine.record.state !== 'running') return
  machine.ending = true
  const { container } = host.paths.run(machine.record.spec.id, machine.record.generation)
  await killAll(host.cgroups, container)
  if (await endedWithin(host, machine, KILL_WAIT_MS)) return
  throw new EngineError('timeout', 'The machine did not end in time.')
}

async function killRunsOf(host: Host, id: string): Promise<void> {
  const containers = listCgroups(host.cgroups).filter((name) => name.startsWith(`${id}-`))
  await Promise.all(containers.map((container) => killAll(host.cgroups, container)))
}

async function endedWithin(host: Host, machine: Machine, ms: number): Promise<boolean> {
  const abort = new AbortController()
  const ended = machine.ended.then(() => true)
  const late = host.clock.sleep(ms, abort.signal).then(
    () => false,
    () => false,
  )
  const outcome = await Promise.race([ended, late])
  abort.abort()
  if (!outcome) await settleEnd(host, machine)
  return machine.record.state !== 'running'
}
