// Pauses machines briefly, so that the copies of all of them are of one instant. They are always resumed, also by
// the next engine if this one dies: a marker file beside the run, written before the freeze, tells a paused machine
// from a sleeping one. Sleeping machines stay asleep. Call it with the machines locked.

import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { EngineError } from '../../errors.ts'
import { freezeGroup, thawGroup } from '../kernel/cgroups.ts'
import { waitForLaunches } from '../exec/launching.ts'
import { recordEndIfExited } from '../lifecycle/exits.ts'
import type { EngineContext, Machine } from '../context.ts'
import type { RunPaths } from '../paths.ts'
import { retry } from '../lifecycle/clean-up-run.ts'

export async function whileQuiesced<T>(
  host: EngineContext,
  machines: Machine[],
  work: () => Promise<T>,
): Promise<T> {
  const held = machines.filter(({ record, frozen }) => record.state === 'running' && !frozen)
  const goOn = Promise.withResolvers<void>()
  // Set first: what starts now waits, instead of finding a frozen group.
  for (const machine of held) machine.quiesced = goOn.promise
  try {
    const outcomes = await Promise.allSettled(held.map((machine) => quiesce(host, machine)))
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
    return await work()
  } finally {
    await Promise.all(held.map((machine) => resume(host, machine)))
    for (const machine of held) machine.quiesced = null
    goOn.resolve()
  }
}

/** Resumes a run that an earlier engine was copying when it died. */
export async function resumeAbandoned(host: EngineContext, paths: RunPaths): Promise<void> {
  if (!existsSync(paths.held)) return
  thawGroup(host.cgroups, paths.container)
  await rm(paths.held, { force: true })
}

async function quiesce(host: EngineContext, machine: Machine): Promise<void> {
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
async function resume(host: EngineContext, { record }: Machine): Promise<void> {
  const { id } = record.spec
  const paths = host.paths.run(id, record.generation)
  await retry(host, id, () =>
    host.effect('engine.fork.resume', async () => {
      thawGroup(host.cgroups, paths.container)
      await rm(paths.held, { force: true })
    }),
  )
}
