// Begins and ends the faults of a schedule.

import type { Operation } from '../support/fake-engine/faults.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { type Trouble, troubled } from './steps.ts'
import { bringAboutOnHost, endHostTrouble } from './hosts.ts'
import type { World } from './world.ts'

export async function bringAbout(world: World, act: Trouble): Promise<void> {
  const { fake, database, clock, reference } = world
  const unit = 'unit' in act ? reference.unitAt(act.unit) : undefined
  const at = world.hosts.find(({ id }) => id === unit?.hostId)?.there ?? fake
  const machine = at.machines().find(({ id }) => id === unit?.id)
  switch (act.trouble) {
    case 'the server dies':
      return await world.killServer()
    case 'the engine dies':
      return killEngine(world, act.forMs)
    case 'the host dies':
      await world.killServer()
      killEngine(world, SECOND)
      for (const { id } of fake.machines()) fake.loseMachine(id)
      return clock.reboot()
    case 'a process ends':
      if (machine) at.endProcess(machine.id, { code: act.code })
      return
    case 'a machine is lost':
      if (machine) at.loseMachine(machine.id)
      return
    case 'the engine fails':
      return fake.fail(act.operation, act.kind, { when: act.when })
    case 'the engine is slow':
      return fake.delay(act.operation, act.forMs, { when: act.when })
    case 'the connection breaks':
      return database.breakAfter(act.queries, act.side)
    case 'the database is away':
      database.setUp(false)
      return world.later(act.forMs, 'the database is back', () => database.setUp(true))
    case 'memory is left':
      return fake.setCapacity({ availableMemoryMb: act.mb })
    case 'packets are sent':
      if (unit) at.sendPackets([unit.id])
      return reference.sent()
    case 'the clock jumps':
      return clock.jump(act.byMs)
    default:
      return await bringAboutOnHost(world, act)
  }
}

function killEngine({ engine, later }: World, forMs: number): void {
  if (!engine.isUp()) return
  engine.crash()
  later(forMs, 'the engine is back', () => engine.start())
}

/** From here on everything works at once, and waits for faults are over. */
export function endAllTrouble(world: World): void {
  const { engine, database, fake, gates, note } = world
  note('all trouble ends')
  engine.start()
  engine.setSlow(false)
  database.heal()
  for (const operation of Object.keys(troubled) as Operation[]) fake.heal(operation)
  fake.setCapacity({ availableMemoryMb: 65_536 })
  endHostTrouble(world)
  for (const gate of gates.closed()) gate.isSlow = false
}
