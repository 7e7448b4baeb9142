// A machine made ahead: its first run, created, started up to a program that waits for the command to become, and
// frozen. On the host it is a machine whose creation was interrupted (records/record.ts): the next engine removes it. Once a
// create has taken it, its disk and its network are the new machine's, and its run is the machine's first one.

import { closeSync } from 'node:fs'
import type { EngineContext, Machine } from '../machine/context.ts'
import { closeUnused } from '../exec/make-standby.ts'
import { addStandby } from '../exec/standby.ts'
import { cleanUpRun } from '../machine/clean-up-run.ts'
import type { MachineRecord } from '../records/record.ts'
import type { Paths } from '../paths.ts'
import { closeNaming } from './naming.ts'
import type { Ready } from '../machine/ready-machine.ts'

/** The only run that can be made ahead: a later one needs what the earlier have left. */
export const FIRST_GENERATION = 1
/** Registers the name under which the machine's first run was made: its container keeps that name. */
export function nameFirstRun(paths: Paths, { spec, madeAs }: Pick<MachineRecord, 'spec' | 'madeAs'>): void {
  if (madeAs !== undefined) paths.containers.set(`${spec.id}-${FIRST_GENERATION}`, madeAs)
}

/** Removes the waiting run of a machine, if it has one: its first start makes another. The machine must be locked. */
export async function dropReady(host: EngineContext, machine: Machine): Promise<void> {
  const { ready } = machine
  if (!ready) return
  closeReady(machine)
  // gVisor has emptied the namespace.
  machine.attachment = null
  await cleanUpRun(host, ready.paths)
}

/** The waiting run is none any more, or is being removed. */
export function closeReady(machine: Machine): void {
  if (machine.ready) closeEnds(machine.ready)
  machine.ready = null
}

export function closeEnds({
  root,
  orders,
  naming,
  standby,
}: Pick<Ready, 'root' | 'orders' | 'naming' | 'standby'>): void {
  for (const fd of [root, orders]) closeSync(fd)
  if (naming) closeNaming(naming)
  if (standby) closeUnused(standby)
}

/** Gives the machine the standby that was made with it, for its first command. */
export function passStandby(host: EngineContext, machine: Machine, ready: Ready): void {
  if (ready.standby) addStandby(host, machine, 'user', Promise.resolve(ready.standby))
  ready.standby = null
}
