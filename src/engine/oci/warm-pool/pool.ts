// Machines made ahead, for kinds that are in use: of a team, an image, a class and a size. A create of such a kind takes
// one, and another is made once nothing else is to do. None serves twice, and none of another team's.

import { existsSync } from 'node:fs'
import { MINUTE, SECOND } from '../../../lib/clock.ts'
import type { MachineSpec } from '../../engine.ts'
import { getDriver, type EngineContext } from '../machine/context.ts'
import { availableMemoryMb } from '../kernel/capacity.ts'
import { isMonitorAlive } from '../runtime/monitor.ts'
import { traitsOf } from '../traits.ts'
import { checkReserve } from '../storage/pool.ts'
import { type Burst, readyFor, withCreate } from './bursts.ts'
import { identityOf, makeReady, removeReady } from './make.ts'
import { closeEnds, dropReady } from './ready.ts'
import type { Ready, ReadyMachines, ReadyOptions } from '../machine/ready-machine.ts'

export const noReadyMachines: ReadyOptions = { perKind: 0, memoryReserveMb: 0 }

type Kind = {
  spec: MachineSpec
  usedAtMs: number
  bursts: Burst[]
  ready: Ready[]
  /** In a row. */
  failures: number
  notBeforeMs: number
}

/** Those that were used last. */
const MAX_KINDS = 4
/** Of all kinds: 170 MB in gVisor. */
const MAX_MACHINES = 12
const KIND_KEPT_MS = 10 * MINUTE
/** Creates and starts have the processors first. */
const QUIET_MS = SECOND / 2
const LOOK_EVERY_MS = SECOND / 4
/** After a failure, which a busy host is enough for; twice as long after each. */
const RETRY_MS = 2 * SECOND
const LONGEST_RETRY_MS = MINUTE
/** A machine that was taken and is not started: it waits for memory, or its caller is gone. */
const STARTED_WITHIN_MS = 30 * SECOND
/** Free beside the reserve and the size of one more machine: less, and none is made; none at all, and all go. */
const SPARE_MB = 256

export function openReadyMachines(context: () => EngineContext, options: ReadyOptions): ReadyMachines {
  const kinds = new Map<string, Kind>()
  const counts = { hits: 0, misses: 0 }
  const closed = new AbortController()
  let lastUsedMs = 0
  let running: Promise<void> = Promise.resolve()
  const isOn = options.perKind > 0
  const all = () => [...kinds.values()].flatMap(({ ready }) => ready)
  const roomMb = () => availableMemoryMb() - options.memoryReserveMb

  const discard = async (gone: Ready[]) => {
    const host = context()
    for (const kind of kinds.values()) kind.ready = kind.ready.filter((one) => !gone.includes(one))
    await Promise.all(
      gone.map(async (ready) => {
        closeEnds(ready)
        await removeReady(host, ready).catch((error: unknown) =>
          host.log.warn({ err: error }, 'a machine made ahead stays until the next start of the engine'),
        )
      }),
    )
  }

  const fill = async () => {
    const host = context()
    const now = host.clock.monotonicMs()
    if (now - lastUsedMs < QUIET_MS || all().length >= MAX_MACHINES) return
    // One of each kind comes before the second of any.
    const wanted = [...kinds.values()]
      .filter(({ ready, bursts }) => ready.length < readyFor(bursts, options.perKind))
      .filter(({ notBeforeMs }) => notBeforeMs <= now)
      .toSorted((one, other) => one.ready.length - other.ready.length || other.usedAtMs - one.usedAtMs)
      .find(({ spec }) => roomMb() >= SPARE_MB + spec.size.memoryMb)
    if (!wanted) return
    try {
      await checkReserve(host.paths, host.reserveGb)
      const ready = await host.images.hold([wanted.spec.imageDigest], async ([image]) =>
        image ? await makeReady(host, wanted.spec, image, closed.signal) : null,
      )
      if (ready) wanted.ready.push(ready)
      noteAttempt(wanted, ready !== null, host.clock.monotonicMs())
    } catch (error) {
      noteAttempt(wanted, false, host.clock.monotonicMs())
      if (!closed.signal.aborted) host.log.warn({ err: error }, 'no machine could be made ahead')
    }
  }

  /** Removes what is out of use. */
  const tidy = async () => {
    const host = context()
    const now = host.clock.monotonicMs()
    const old = [...kinds].filter(([, { usedAtMs }]) => now - usedAtMs > KIND_KEPT_MS)
    const surplus = [...kinds]
      .toSorted(([, one], [, other]) => other.usedAtMs - one.usedAtMs)
      .slice(MAX_KINDS)
    const gone = [...old, ...surplus].flatMap(([, { ready }]) => ready)
    const broken = all().filter((ready) => !isUsable(host, ready))
    const isShort = all().length > 0 && roomMb() < 0
    await discard(isShort ? all() : [...new Set([...gone, ...broken])])
    for (const [key] of [...old, ...surplus]) kinds.delete(key)
    await dropUnstarted(host, now - STARTED_WITHIN_MS)
  }

  const clear = async () => {
    await discard(all())
    await dropUnstarted(context(), Number.POSITIVE_INFINITY)
  }

  return {
    take(spec, image) {
      if (!isOn || !canBeReady(context(), spec)) return null
      const host = context()
      const now = host.clock.monotonicMs()
      lastUsedMs = now
      const key = keyOf(spec)
      const kind = kinds.get(key) ?? {
        spec,
        usedAtMs: now,
        bursts: [],
        ready: [],
        failures: 0,
        notBeforeMs: 0,
      }
      const usable = kind.ready.filter((ready) => ready.imageRoot === image.rootfs && isUsable(host, ready))
      const [taken = null, ...others] = usable
      const useless = kind.ready.filter((ready) => !usable.includes(ready))
      // The same object as ever: one that is being made is put into it.
      const bursts = withCreate(kind.bursts, now, now - KIND_KEPT_MS)
      Object.assign(kind, { usedAtMs: now, bursts, ready: others })
      kinds.set(key, kind)
      void discard(useless)
      if (!taken) counts.misses += 1
      return taken
    },
    count(outcome) {
      // The next one is not made beside this start.
      lastUsedMs = context().clock.monotonicMs()
      if (outcome === 'hit') counts.hits += 1
      else counts.misses += 1
    },
    async makeRoom(memoryMb) {
      lastUsedMs = context().clock.monotonicMs()
      if (all().length > 0 && roomMb() < memoryMb) await discard(all())
    },
    clear,
    stats: () => ({
      ...counts,
      waiting: all().length,
      memoryMb: all().reduce((sum, { memoryMb }) => sum + memoryMb, 0),
    }),
    begin() {
      if (isOn) running = untilClosed(context(), closed.signal, async () => (await tidy(), await fill()))
    },
    async close() {
      closed.abort()
      await running
      await clear()
    },
  }
}

function noteAttempt(kind: Kind, isMade: boolean, nowMs: number): void {
  kind.failures = isMade ? 0 : kind.failures + 1
  const waitMs = isMade ? 0 : Math.min(RETRY_MS * 2 ** (kind.failures - 1), LONGEST_RETRY_MS)
  kind.notBeforeMs = nowMs + waitMs
}

async function untilClosed(
  host: EngineContext,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    await work().catch((error: unknown) => host.log.error({ err: error }, 'machines made ahead'))
    await host.clock.sleep(LOOK_EVERY_MS, signal).catch(() => {})
  }
}

/** What else differs between machines is said by their start. */
function keyOf({ networkGroup, imageDigest, isolation, size, volume, nested = false }: MachineSpec): string {
  const { cpus, memoryMb, pids, diskGb } = size
  const ofVolume = volume && [volume.mount, volume.gb]
  return JSON.stringify([
    networkGroup,
    imageDigest,
    isolation,
    nested,
    cpus,
    memoryMb,
    pids,
    diskGb,
    ofVolume,
  ])
}

function canBeReady(host: EngineContext, spec: MachineSpec): boolean {
  // A sandbox gets its hostname by a command of ours, and a command by the runtime's exec takes as long as it saves.
  return traitsOf(spec).sharesKernel || getDriver(host, spec).commands.program !== null
}

/** It lives, and what it was made of is still there: the image was not removed or fetched again, the runtime not replaced. */
function isUsable(host: EngineContext, ready: Ready): boolean {
  return isAlive(ready) && ready.identity === identityOf(host, ready.spec, ready.imageRoot)
}

function isAlive({ monitor, paths }: Ready): boolean {
  return isMonitorAlive(monitor) && !existsSync(paths.exit)
}

async function dropUnstarted(host: EngineContext, madeBeforeMs: number): Promise<void> {
  for (const machine of host.machines.values()) {
    const { ready, record } = machine
    if (ready && ready.takenAtMs < madeBeforeMs)
      await host.lock(record.spec.id, async () => {
        if (machine.ready === ready) await dropReady(host, machine)
      })
  }
}
