// Has a machine stand still for a copy of its memory, in the way of its class: its group is frozen, or its own kernel pauses
// what runs in it. A marker file beside the run, written before, tells the next engine that it is to go on.

import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { driverOf, type EngineContext, type Machine } from '../machine/context.ts'
import { waitForLaunches } from '../runtime/launching.ts'
import { freezeGroup, isFrozen, thawGroup } from '../kernel/cgroups.ts'
import type { RunPaths } from '../paths.ts'
import type { Standing } from '../runtime/driver.ts'

/** Null: the machines of its class are saved frozen, or not at all. */
export function standingOf(host: EngineContext, machine: Machine): Standing | null {
  return driverOf(host, machine).memory?.standing ?? null
}

/** Rejects if it did not stand in time. In any case it must be let go. The machine must be locked. */
export async function holdMachine(host: EngineContext, machine: Machine, standing: Standing): Promise<void> {
  const paths = pathsOf(host, machine)
  await waitForLaunches(host.clock, machine.launching)
  await writeFile(paths.held, '')
  // Once only: it would have to be let go as often.
  if (machine.held) return
  machine.held = true
  const thaw = () => thawGroup(host.cgroups, paths.container)
  await standing.hold(paths.container, thaw, machine.destroySignal.signal)
}

/** It goes on, or is frozen again if it was. */
export async function releaseMachine(
  host: EngineContext,
  machine: Machine,
  standing: Standing,
): Promise<void> {
  const paths = pathsOf(host, machine)
  if (machine.frozen) await freezeGroup(host.cgroups, paths.container)
  // Once only: it does not survive a second time.
  if (machine.held) {
    machine.held = false
    await standing.release(paths.container, machine.frozen)
  }
  await rm(paths.held, { force: true })
}

/** Has a run go on that stood for an earlier engine. */
export async function resumeHeld(host: EngineContext, machine: Machine, paths: RunPaths): Promise<void> {
  if (!existsSync(paths.held)) return
  const standing = standingOf(host, machine)
  const wasFrozen = isFrozen(host.cgroups, paths.container)
  thawGroup(host.cgroups, paths.container)
  try {
    if (standing && !wasFrozen && (await standing.isHeld(paths.container))) {
      await standing.release(paths.container, false)
      // It also obeys while it ends.
      if (await standing.isHeld(paths.container)) throw new Error('it does not answer')
    }
    await rm(paths.held, { force: true })
  } catch (error) {
    // It has saved itself and is ending: with the mark, that is not reported as its own exit.
    host.log.warn({ err: error, container: paths.container }, 'a machine that stood does not go on')
  }
}

function pathsOf(host: EngineContext, { record }: Machine): RunPaths {
  return host.paths.run(record.spec.id, record.generation)
}
