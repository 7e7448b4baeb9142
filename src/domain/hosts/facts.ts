// What is known of a host of another machine: as its engine last said, checked before it is used, and stored for the
// operator (decisions/hosts.md).

import type { App } from '../../app.ts'
import { gatewayFactsSchema } from '../../contract/gateway-facts.ts'
import type { Capacity, HostFacts } from '../../engine/engine.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import { refuseVersion } from '../../lib/version.ts'
import { saveGatewayFacts } from '../../store/host-gateways.ts'
import { type HostFactsRow, type HostRecord, saveHostFacts } from '../../store/hosts.ts'

/** A slower answer says too little about when it was given. */
const EXACT_MS = SECOND
const LARGEST_OFFSET_MS = MINUTE
/** Changes of this are noise. */
const SAME_OFFSET_MS = 20

/** Asks the engine of a host. Throws a sentence if the host must not be used as it is. */
export async function askFacts(
  app: App,
  host: FleetHost,
  record: HostRecord,
  hosts: HostRecord[],
): Promise<void> {
  const { clock } = app
  const sentMs = clock.monotonicMs()
  const capacity = await host.unguarded.capacity()
  const tookMs = clock.monotonicMs() - sentMs
  if (capacity.host) {
    refuseOtherVersion(capacity.host)
    const aheadMs = Math.round(capacity.host.nowMs - (clock.now().getTime() - tookMs / 2))
    if (tookMs <= EXACT_MS && Math.abs(aheadMs - host.clockOffsetMs) > SAME_OFFSET_MS)
      host.clockOffsetMs = aheadMs
    refuseOthers(record, hosts, capacity.host)
    refuseSubnet(app, host, capacity.host)
    await learnGateway(app, host, capacity.host)
  }
  if (Math.abs(host.clockOffsetMs) > LARGEST_OFFSET_MS)
    throw new Error(`its clock is ${Math.round(host.clockOffsetMs / SECOND)} s ahead of the server's; set it`)
  if (hasNews(host.capacity, capacity)) app.log.info({ host: host.name, ...capacity.host }, 'host has booted')
  host.capacity = capacity
}

/** Before anything else that it says is understood in another way. */
function refuseOtherVersion({ version }: HostFacts): void {
  const apart = version === undefined ? null : refuseVersion(version)
  if (apart !== null) throw new Error(apart)
}

/** Its disks are of other units, or it is another machine that has the same address. */
function refuseOthers({ id, instance }: HostRecord, hosts: HostRecord[], said: HostFacts): void {
  const other = hosts.find((each) => each.id !== id && each.instance === said.instance)
  if (other) throw new Error(`it runs the data directory of the host "${other.name}"`)
  if (instance !== null && instance !== said.instance)
    throw new Error(`it runs the data directory of ${said.instance}, and this host's is ${instance}`)
}

/** The addresses of units are unique over all hosts. */
function refuseSubnet({ fleet }: App, host: FleetHost, { subnet }: HostFacts): void {
  const other = fleet.hosts().find((each) => each.id !== host.id && each.capacity?.host?.subnet === subnet)
  if (other) throw new Error(`its subnet ${subnet} is that of the host "${other.name}"; give it another one`)
}

/** Until its gateway has said it: the first unit there is shown before. */
async function learnGateway(app: App, { id: hostId }: FleetHost, { gateway }: HostFacts): Promise<void> {
  if (app.gateways.has(hostId)) return
  const facts = gatewayFactsSchema.safeParse(gateway).data
  if (!facts) return
  await saveGatewayFacts(app.db, { hostId, facts })
  app.gateways.set(hostId, facts)
}

function hasNews(before: Capacity | null, now: Capacity): boolean {
  return before !== null && before.host?.boot !== now.host?.boot
}

/** Of all hosts that answer, in one statement. */
export async function saveFacts(app: App, hosts: FleetHost[]): Promise<void> {
  await saveHostFacts(
    app.db,
    hosts.flatMap((host) => rowOf(app, host) ?? []),
  )
}

function rowOf(app: App, { id, capacity, clockOffsetMs }: FleetHost): HostFactsRow | null {
  if (!capacity?.host) return null
  const known = app.capabilities.get(id)
  const usable = (known?.classes ?? []).filter(({ available }) => available).map((each) => each.class)
  return {
    id,
    instance: capacity.host.instance,
    boot: capacity.host.boot,
    classes: usable.toSorted((one) => (one === known?.defaultClass ? -1 : 0)),
    cpus: capacity.cpus,
    memoryMb: capacity.memoryMb,
    availableMb: capacity.availableMemoryMb,
    clockOffsetMs,
    version: capacity.host.version ?? null,
  }
}
