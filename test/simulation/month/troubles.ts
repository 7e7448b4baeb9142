// What goes wrong while calls are in progress.

import type { EngineErrorKind } from '../../../src/engine/errors.ts'
import { DAY, HOUR, MINUTE } from '../../../src/lib/clock.ts'
import type { Random } from '../random.ts'
import type { World } from './world.ts'

const failing = ['start', 'stop', 'freeze', 'thaw', 'create', 'fork', 'suspend', 'destroy', 'exec'] as const
const kinds: [EngineErrorKind, ...EngineErrorKind[]] = ['internal', 'timeout', 'engine_away', 'host_full']
const sides = ['before', 'after'] as const

export function bringTrouble(world: World, random: Random, { withJumps }: { withJumps: boolean }): void {
  const { engine, account, servers, clock } = world
  const server = servers[random.below(servers.length)]
  const running = engine.machines().filter(({ state, frozen }) => state === 'running' && !frozen)
  const victim = running[random.below(running.length)]
  const luck = random.below(100)
  if (luck < 10 && server) {
    world.count('server died')
    server.connections.bring({ what: 'dies', side: random.pick(sides), queries: random.below(80) })
  } else if (luck < 20 && server) {
    world.count('connection broke')
    server.connections.bring({ what: 'breaks', side: random.pick(sides), queries: random.below(80) })
  } else if (luck < 26) {
    world.count('engine failed')
    engine.fail(random.pick(failing), random.pick(kinds), { when: random.pick(sides) })
  } else if (luck < 29) {
    world.count('engine died')
    engine.crash()
  } else if (luck < 33 && victim) {
    world.count('machine lost')
    account.ended(victim.id, 'lost')
    engine.loseMachine(victim.id)
  } else if (luck < 37 && victim) {
    world.count('process ended')
    account.ended(victim.id, 'exited')
    engine.endProcess(victim.id, { code: 1 })
  } else if (luck < 38 && withJumps) {
    world.count('clock set')
    clock.jump(random.pick([HOUR, -HOUR, DAY, -DAY, 10 * MINUTE, -10 * MINUTE]))
  }
}

/** Removes faults that have not happened by now. */
export function endTroubles({ engine, servers }: World): void {
  for (const operation of failing) engine.heal(operation)
  for (const { connections } of servers) connections.heal()
}
