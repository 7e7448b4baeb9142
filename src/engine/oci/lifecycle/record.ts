// The engine's record of a machine, on disk so that the next engine can adopt it. It contains no secrets.

import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineEgress } from '../../egress.ts'
import type { Exit, MachineSpec } from '../../engine.ts'
import type { Paths } from '../paths.ts'
import { keepSecrets } from './secrets.ts'

export type MachineRecord = {
  spec: MachineSpec
  address: string
  /** The number of forks between the machine and its first ancestor. */
  forkGeneration: number
  /** The newest run; 0 before the first. */
  generation: number
  /** `starting`: effects of a start may exist, but none is certain. */
  state: 'created' | 'starting' | 'running' | 'exited' | 'lost'
  /** The fingerprint of its newest run (start-fingerprint.ts); absent before the first. */
  beginning?: string
  /** Whether it resumed with the memory of an earlier run. */
  resumed?: boolean
  /** conmon, with its start time, so that a reused pid is not taken for it. */
  monitor: { pid: number; startTime: string } | null
  exit: Exit | null
  /** The container of its first run, if that was made ahead (warm-pool). */
  madeAs?: string
  /** What it may reach. */
  egress: MachineEgress | null
}

/** Of a machine that has never run. */
export function newRecord(spec: MachineSpec, address: string): MachineRecord {
  return {
    spec,
    address,
    forkGeneration: 0,
    generation: 0,
    state: 'created',
    monitor: null,
    exit: null,
    egress: null,
  }
}

const RECORD = 'machine.json'

/**
 * Called before a machine's disk is made: a disk without such a directory has lost its record, and is kept
 * (aside.ts).
 */
export async function beginMachine(paths: Paths, id: string): Promise<void> {
  await mkdir(paths.machine(id).dir, { recursive: true, mode: 0o700 })
}

/**
 * Flushed under a temporary name and renamed: a reader sees the old record or the new one, even after a power loss.
 */
export async function saveRecord(paths: Paths, record: MachineRecord): Promise<void> {
  const machine = paths.machine(record.spec.id)
  await mkdir(machine.logs, { recursive: true, mode: 0o700 })
  await keepSecrets(paths, record)
  const temporary = `${machine.record}.new`
  const { egress } = record
  const kept = { ...record, egress: egress && { ...egress, secrets: [] } }
  await writeFile(temporary, JSON.stringify(kept), { mode: 0o600, flush: true })
  await rename(temporary, machine.record)
}

export type Records = {
  records: MachineRecord[]
  /** Ids of machines whose creation was interrupted: they have no record. */
  unfinished: string[]
  /** Ids with an unreadable record: their disks may be wanted. */
  damaged: string[]
}

/** `directory`: that of the machines, or of those put aside. */
export async function loadRecords(directory: string): Promise<Records> {
  const found: Records = { records: [], unfinished: [], damaged: [] }
  for (const id of await readdir(directory)) {
    const record = await readRecord(join(directory, id, RECORD))
    if (record === 'absent') found.unfinished.push(id)
    else if (record === 'damaged') found.damaged.push(id)
    else found.records.push(record)
  }
  return found
}

async function readRecord(path: string): Promise<MachineRecord | 'absent' | 'damaged'> {
  try {
    const record = JSON.parse(await readFile(path, 'utf8')) as MachineRecord
    const exit = record.exit && {
      ...record.exit,
      byHost: record.exit.byHost ?? false,
      at: new Date(record.exit.at),
    }
    const egress = record.egress && { ...record.egress, secrets: [] }
    return { ...record, forkGeneration: record.forkGeneration ?? 0, egress: egress ?? null, exit }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'absent' : 'damaged'
  }
}
