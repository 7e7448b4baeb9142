// The hosts of other machines in a simulation, their faults, and what must hold of all hosts together at every moment.

import { createFakeEngine, type FakeEngine } from '../support/fake-engine/fake-engine.ts'
import type { MachineStatus } from '../../src/engine/engine.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { setHostState } from '../../src/store/hosts.ts'
import { createSimulatedEngine, type SimulatedEngine } from './engine.ts'
import { createLife } from './gates.ts'
import type { Seen } from './seen.ts'
import type { HostTrouble } from './steps.ts'
import type { World } from './world.ts'

export type SimulatedHost = {
  id: string
  name: string
  engine: SimulatedEngine
  /** Its own data directory, and the one that its engine has at the moment. */
  own: FakeEngine
  there: FakeEngine
  /** The disks that were there a moment ago. */
  disks: Set<string>
  isSilent: boolean
  isLost: boolean
  /** By the monotonic clock: until then its units may fail because of it. */
  troubledUntilMs: number
}

export const farHosts = [
  { id: `host_${'e'.repeat(32)}`, name: 'east', subnet: 80, aheadMs: 3 * SECOND },
  { id: `host_${'f'.repeat(32)}`, name: 'west', subnet: 81, aheadMs: -3 * SECOND },
]

export const FAR_HOSTS = `
  insert into hosts (id, name, address, instance, state) values
    ${farHosts.map(({ id, name }) => `('${id}', '${name}', '${name}', '${name}', 'ready')`).join(', ')}
  on conflict (id) do update set state = 'ready', away_since = null, reason = null, instance = excluded.name`

type Parts = Pick<World, 'clock' | 'gates' | 'random' | 'note'>

export function createFarHosts({ clock, gates, random, note }: Parts): SimulatedHost[] {
  return farHosts.map(({ id, name, subnet, aheadMs }) => {
    const own = { ...clock.for(createLife(name)), now: () => new Date(clock.now().getTime() + aheadMs) }
    const fake = createFakeEngine({ clock: own, subnet, instance: name })
    const engine = createSimulatedEngine(fake, gates, random, (what) => note(`${what} on ${name}`))
    return { id, name, engine, ...newDirectory(fake), isSilent: false, isLost: false, troubledUntilMs: 0 }
  })
}

export function newDirectory(fake: FakeEngine): Pick<SimulatedHost, 'own' | 'there' | 'disks'> {
  return { own: fake, there: fake, disks: new Set() }
}

/** A host that answers again is taken back within this time, and its calls are answered. */
const RECOVERED_MS = 2 * MINUTE
/** Longer than it takes until a host is away. */
const BOOT_MS = 30 * SECOND

export async function bringAboutOnHost(world: World, act: HostTrouble): Promise<void> {
  if (act.trouble === 'two hosts are swapped') return swap(world)
  const host = world.farHosts[act.host]
  if (!host || host.isLost) return
  switch (act.trouble) {
    case 'a host is cut off':
      trouble(world, host, act.forMs)
      setSilent(host, true)
      return world.later(act.forMs, `${host.name} can be reached`, () => setSilent(host, false))
    case 'a host refuses connections':
      return restart(world, host, act.forMs)
    case 'a host boots':
      restart(world, host, act.forMs)
      for (const { id } of host.there.machines()) host.there.loseMachine(id)
      return
    case 'a host is full':
      trouble(world, host, act.forMs)
      host.there.setCapacity({ availableMemoryMb: 100 })
      return world.later(act.forMs, `${host.name} has room`, () => heal(host))
    case 'a machine of no unit is there':
      // Before a server takes it back, or after: no machine comes into being while one does.
      return world.app()?.fleet.find(host.id)?.awaySince === null ? await plant(host) : undefined
    case 'a host is given up':
      return giveUp(world, host)
  }
}

function trouble({ clock }: World, host: SimulatedHost, forMs: number): void {
  const untilMs = clock.elapsedMs() + forMs + RECOVERED_MS
  host.troubledUntilMs = Math.max(host.troubledUntilMs, untilMs)
}

function setSilent(host: SimulatedHost, isSilent: boolean): void {
  host.isSilent = isSilent
  host.engine.setSilent(isSilent)
}

function restart(world: World, host: SimulatedHost, forMs: number): void {
  trouble(world, host, forMs)
  if (!host.engine.isUp()) return
  host.engine.crash()
  world.later(forMs, `the engine of ${host.name} is back`, () => host.engine.start())
}

function heal(host: SimulatedHost): void {
  host.own.setCapacity({ availableMemoryMb: 65_536 })
}

/** Each of the two machines is started with the data directory of the other. */
function swap(world: World): void {
  const [one, other] = world.farHosts
  if (!one || !other || one.isLost || other.isLost) return
  restart(world, one, BOOT_MS)
  restart(world, other, BOOT_MS)
  const there = [one.there, other.there] as const
  one.there = there[1]
  other.there = there[0]
  for (const host of [one, other]) {
    for (const { id } of host.there.machines()) host.there.loseMachine(id)
    host.engine.exchange(host.there)
    host.disks = new Set(host.there.disks())
    if (host.there !== host.own) host.troubledUntilMs = Infinity
    else host.troubledUntilMs = world.clock.elapsedMs() + BOOT_MS + RECOVERED_MS
  }
}

/** As after a database was restored from an older backup. */
async function plant(host: SimulatedHost): Promise<void> {
  const id = `unit_${'f'.repeat(30)}${host.there.disks().length.toString(16).padStart(2, '0').slice(-2)}`
  const { digest: imageDigest } = await host.there.pull('berth.local/debian:12')
  const size = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
  await host.there.create({ id, imageDigest, isolation: 'gvisor', size, volume: null, networkGroup: 1 })
}

/** An operator may say so of a host that is away. */
function giveUp(world: World, host: SimulatedHost): void {
  const app = world.app()
  const isAway = (app?.fleet.find(host.id)?.awaySince ?? null) !== null
  if (!app || !isAway || world.farHosts.some(({ isLost }) => isLost) || host.there !== host.own) return
  host.isLost = true
  host.troubledUntilMs = Infinity
  const move = { id: host.id, from: ['ready' as const], to: 'lost' as const, at: world.clock.now() }
  const decide = async () => {
    await setHostState(world.database.for(createLife('operator')), move).catch(() => {
      world.later(SECOND, 'the operator tries again', decide)
    })
  }
  void decide()
}

export function endHostTrouble(world: World): void {
  const isSwapped = world.farHosts.some(({ there, own }) => there !== own)
  if (isSwapped) swap(world)
  for (const host of world.farHosts) {
    heal(host)
    host.engine.setSlow(false)
    if (host.isLost) continue
    setSilent(host, false)
    if (!isSwapped) host.engine.start()
  }
}

/** Whether a host that was not given up does not answer, or has not been taken back since. */
export function isHostAway({ farHosts: hosts, app }: World): boolean {
  const fleet = app()?.fleet
  const isThere = ({ isSilent, engine, own, there }: SimulatedHost) =>
    !isSilent && engine.isUp() && there === own
  const isKnown = ({ id }: SimulatedHost) => fleet?.find(id)?.awaySince === null
  return hosts.some((host) => !host.isLost && !(isThere(host) && isKnown(host)))
}

export function isTroubled({ farHosts: hosts, clock }: World, hostId: string | null): boolean {
  return hosts.some(
    ({ id, troubledUntilMs }) => (hostId === null || id === hostId) && clock.elapsedMs() < troubledUntilMs,
  )
}

/** States in which a unit may lose its disk. */
const going = new Set(['creating', 'error', 'destroying', 'destroyed'])

/** What may never be, whatever else happens. */
export function judgeHosts(hosts: SimulatedHost[], units: Seen[]): string[] {
  const known = new Map(units.map((unit) => [unit.id, unit]))
  const faults: string[] = []
  const runsOn = new Map<string, string>()
  for (const host of hosts) {
    const disks = new Set(host.there.disks())
    for (const id of host.disks) {
      if (disks.has(id)) continue
      const unit = known.get(id)
      if (!unit) faults.push(`${id}: its disk was removed from ${host.name}, and no row says whose it is`)
      else if (!going.has(unit.state))
        faults.push(`${id} is ${unit.state}, and its disk was removed from ${host.name}`)
      else if (unit.hostId !== host.id)
        faults.push(`${id}: its disk was removed from ${host.name}, where it is not`)
    }
    host.disks = disks
    for (const { id, state } of host.there.machines()) {
      const other = state === 'running' ? runsOn.get(id) : undefined
      if (other) faults.push(`${id} runs on ${other} and on ${host.name}`)
      if (state === 'running') runsOn.set(id, host.name)
    }
  }
  return faults
}

/** All machines there are. Those of a host that was given up count as ended, if their units are still there. */
export function machinesEverywhere(hosts: SimulatedHost[], units: Seen[]): MachineStatus[] {
  const here = units.filter(({ state }) => state !== 'destroyed' && state !== 'error')
  return hosts.flatMap((host) => {
    const machines = host.there.machines()
    if (!host.isLost) return machines
    const left = machines.filter(({ id }) => here.some((unit) => unit.id === id))
    return left.map((machine) => ({ ...machine, state: 'exited' as const, frozen: false }))
  })
}
