// Puts aside what the database does not know: machines of unknown units, and disks whose machine has no readable
// record. The database was restored to an earlier state or replaced, which the operator may notice only days later;
// so the machines are ended and kept for a while, and the operator is told. A machine that is wanted again is
// restored.
//
// The directory of such a machine is moved from `machines` to `aside`, with a note of when and why. It keeps its
// disk, its volume and its address.

import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { MINUTE, SECOND } from '../../../lib/clock.ts'
import { runLoop } from '../../../lib/loop.ts'
import { readIfThere } from '../../../lib/read-if-there.ts'
import { writeDurably } from '../../../lib/write-durably.ts'
import { newMachine, type EngineContext, type Machine } from '../machine/context.ts'
import { discardCheckpoint } from '../checkpoint/checkpoints.ts'
import { removeTree } from '../kernel/mounts.ts'
import type { Paths } from '../paths.ts'
import { loadProcesses } from '../processes/adopt.ts'
import { loadRecords, saveRecord } from '../records/record.ts'
import { dropReady } from '../warm-pool/ready.ts'
import { removeMachineState } from '../machine/remove-state.ts'
import { endGracefully } from './stop.ts'

/** `unknown`: the database knows no such unit. `damaged`: its record cannot be read. `no-record`: it has none. */
const reasons = ['unknown', 'damaged', 'no-record'] as const
export type AsideReason = (typeof reasons)[number]

export type Aside = { id: string; at: Date; reason: AsideReason; isToGo: boolean }

const NOTE = 'aside.json'
const REMOVE = 'remove'
const GRACE_MS = 10 * SECOND
const LOOK_EVERY_MS = 5 * SECOND

const noteSchema = z.object({ at: z.iso.datetime(), reason: z.enum(reasons) })

/** Ends its run like a stop. Unknown ids succeed. */
export function putAside(host: EngineContext, id: string, reason: AsideReason): Promise<void> {
  return host.lock(id, async () => {
    const machine = host.machines.get(id)
    if (!machine && !host.damaged.has(id)) return
    if (machine?.record.state === 'running') await loseGracefully(host, machine)
    await machine?.cleanup
    if (machine) await dropReady(host, machine)
    await discardCheckpoint(host.paths, id)
    await host.network.detach(id)
    const { dir } = host.paths.machine(id)
    await writeNote(host, dir, reason)
    await removeTree(host.paths.asideOf(id))
    await rename(dir, host.paths.asideOf(id))
    host.machines.delete(id)
    host.damaged.delete(id)
    host.log.error({ alarm: 'aside', machine: id, reason }, 'machine stopped and put aside')
  })
}

/** Asks its process to end, as in a stop; if its unit comes back, this counts as an end by the host. */
async function loseGracefully(host: EngineContext, machine: Machine): Promise<void> {
  await endGracefully(host, machine, GRACE_MS)
  Object.assign(machine.record, { state: 'lost', exit: null, monitor: null })
  await saveRecord(host.paths, machine.record)
}

/** For a disk that no machine's record names. */
export async function putDiskAside(host: EngineContext, id: string): Promise<void> {
  const dir = host.paths.asideOf(id)
  await mkdir(dir, { mode: 0o700 })
  await writeNote(host, dir, 'no-record')
  host.log.error({ alarm: 'aside', machine: id }, 'disk without a machine record put aside')
}

/** Restores those that are wanted, as they were when they were put aside. */
export async function restoreWanted(host: EngineContext, wanted: Set<string>): Promise<void> {
  const { records, unfinished, damaged } = await loadRecords(host.paths.aside)
  for (const id of [...unfinished, ...damaged].filter((each) => wanted.has(each)))
    host.log.error(
      { alarm: 'aside', machine: id },
      'unit has a disk that was put aside, but no record of its machine',
    )
  for (const record of records) {
    const { id } = record.spec
    if (!wanted.has(id) || host.machines.has(id)) continue
    await host.lock(id, async () => {
      await rename(host.paths.asideOf(id), host.paths.machine(id).dir)
      await rm(join(host.paths.machine(id).dir, NOTE), { force: true })
      const machine = newMachine(record, null)
      host.machines.set(id, machine)
      await loadProcesses(host, machine)
    })
    host.log.warn({ machine: id }, 'machine restored from aside')
  }
}

/** Removes what has been kept for long enough, and what the operator wants removed, until stopped. */
export function startRemovingAside(host: EngineContext, keptMs: number | null): { stop(): Promise<void> } {
  const stopped = new AbortController()
  const run = async () => {
    for (const { id, at, isToGo } of await listAside(host.paths)) {
      const isOld = keptMs !== null && host.clock.now().getTime() - at.getTime() > keptMs
      if (isToGo || isOld) await removeAside(host, id)
    }
  }
  const loop = { name: 'remove what was put aside', everyMs: LOOK_EVERY_MS, timeoutMs: 2 * MINUTE, run }
  const running = runLoop(loop, { clock: host.clock, log: host.log, signal: stopped.signal })
  return {
    stop: async () => {
      stopped.abort()
      await running
    },
  }
}

/** Without its note a machine counts as put aside now: nothing is removed because of a damaged note. */
export async function listAside(paths: Paths): Promise<Aside[]> {
  const ids = await readdir(paths.aside).catch(() => [])
  return await Promise.all(
    ids.map(async (id) => {
      const text = (await readIfThere(join(paths.asideOf(id), NOTE))) ?? ''
      const note = noteSchema.safeParse(parsed(text)).data
      const isToGo = existsSync(join(paths.asideOf(id), REMOVE))
      return { id, at: new Date(note?.at ?? Date.now()), reason: note?.reason ?? 'no-record', isToGo }
    }),
  )
}

/** The engine removes it within seconds, or when it starts. */
export async function askToRemove(paths: Paths, id: string): Promise<void> {
  await writeFile(join(paths.asideOf(id), REMOVE), '')
}

async function removeAside(host: EngineContext, id: string): Promise<void> {
  await host.lock(id, async () => {
    // It is wanted again, and its disk is in use.
    if (host.machines.has(id) || host.damaged.has(id)) await removeTree(host.paths.asideOf(id))
    else await removeMachineState(host, id)
  })
  host.log.warn({ machine: id }, 'machine removed from aside')
}

async function writeNote(host: EngineContext, directory: string, reason: AsideReason): Promise<void> {
  await writeDurably(join(directory, NOTE), JSON.stringify({ at: host.clock.now(), reason }))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
