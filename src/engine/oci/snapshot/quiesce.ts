// Has machines stand briefly, so that the copies of all of them are of one instant. They are always resumed, also by
// the next engine if this one dies: a marker file beside the run, written before the freeze, tells a paused machine
// from a sleeping one. Sleeping machines stay asleep. Call it with the machines locked.

import { rm, writeFile } from 'node:fs/promises'
import { EngineError } from '../../errors.ts'
import { freezeGroup, thawGroup } from '../kernel/cgroups.ts'
import { waitForLaunches } from '../runtime/launching.ts'
import { recordEndIfExited } from '../lifecycle/exits.ts'
import { holdMachine, releaseMachine, standingOf } from '../lifecycle/hold.ts'
import type { Standing } from '../runtime/driver.ts'
import type { EngineContext, Machine } from '../machine/context.ts'
import { retry } from '../machine/clean-up-run.ts'

export async function whileQuiesced<T>(
  host: EngineContext,
  machines: Machine[],
  saved: Set<Machine>,
  work: () => Promise<T>,
): Promise<T> {
  const standingFor = (machine: Machine) => (saved.has(machine) ? standingOf(host, machine) : null)
  // A sleeping machine that saves itself must be woken for that, as far as it can be without what runs in it.
  const held = machines.filter(
    (machine) => machine.record.state === 'running' && (!machine.frozen || standingFor(machine) !== null),
  )
  const goOn = Promise.withResolvers<void>()
  // Set first: what starts now waits, instead of finding a frozen group.
  for (const machine of held) machine.quiesced = goOn.promise
  try {
    const outcomes = await Promise.allSettled(
      held.map((machine) => quiesce(host, machine, standingFor(machine))),
    )
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
    return await work()
  } finally {
    await Promise.all(held.map((machine) => resume(host, machine, standingFor(machine))))
    for (const machine of held) machine.quiesced = null
    goOn.resolve()
  }
}

async function quiesce(host: EngineContext, machine: Machine, standing: Standing | null): Promise<void> {
  if (standing) return await host.effect('engine.fork.quiesce', () => holdMachine(host, machine, standing))
  const { spec, generation } = machine.record
  const paths = host.paths.run(spec.id, generation)
  await waitForLaunches(host.clock, machine.launching)
  const stands = await host.effect('engine.fork.quiesce', async () => {
    await writeFile(paths.held, '')
    return await freezeGroup(host.cgroups, paths.container)
  })
  if (stands) return
  await recordEndIfExited(host, machine)
  // What has ended does not change any more.
  if (machine.record.state === 'running')
    throw new EngineError('timeout', 'The machine could not be paused in time.')
}

/** Never rejects: a failure is retried at once. */
async function resume(host: EngineContext, machine: Machine, standing: Standing | null): Promise<void> {
  const { record } = machine
  const { id } = record.spec
  const paths = host.paths.run(id, record.generation)
  await retry(host, id, () =>
    host.effect('engine.fork.resume', async () => {
      if (standing) return await releaseMachine(host, machine, standing)
      thawGroup(host.cgroups, paths.container)
      await rm(paths.held, { force: true })
    }),
  )
}
