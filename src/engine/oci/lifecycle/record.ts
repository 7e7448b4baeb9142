// What the engine knows of a machine, on disk so that the next engine can adopt it. Secrets are not in it.

import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Exit, MachineSpec } from '../../engine.ts'
import type { Paths } from '../paths.ts'

export type MachineRecord = {
  spec: MachineSpec
  address: string
  /** How many forks lie between the machine and its first ancestor. */
  forkGeneration: number
  /** The newest run; 0 before the first. */
  generation: number
  /** `starting`: effects of a start may exist, none is promised. */
  state: 'created' | 'starting' | 'running' | 'exited' | 'lost'
  /** How its newest run began (start-fingerprint.ts): absent before the first. */
  beginning?: string
  /** Whether it went on from what an earlier one had in memory. */
  resumed?: boolean
  /** conmon, and the kernel's start time of it, so that a reused pid is not taken for it. */
  monitor: { pid: number; startTime: string } | null
  exit: Exit | null
}

const RECORD = 'machine.json'

/** Before a machine's disk: a disk without even a directory here is one whose record was lost, and is kept (aside.ts). */
export async function beginMachine(paths: Paths, id: string): Promise<void> {
  await mkdir(paths.machine(id).dir, { recursive: true, mode: 0o700 })
}

/**
 * Flushed under a temporary name and renamed: a reader sees the old record or the new one, also after the
 * power went.
 */
export async function saveRecord(paths: Paths, record: MachineRecord): Promise<void> {
  const machine = paths.machine(record.spec.id)
  await mkdir(machine.logs, { recursive: true, mode: 0o700 })
  const temporary = `${machine.record}.new`
  await writeFile(temporary, JSON.stringify(record), { mode: 0o600, flush: true })
  await rename(temporary, machine.record)
}

export type Records = {
  records: MachineRecord[]
  /** Ids of machines whose making was cut short: they have no record. */
  unfinished: string[]
  /** Ids with a record that cannot be read: they may have a disk that somebody wants. */
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
    return { ...record, forkGeneration: record.forkGeneration ?? 0, exit }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'absent' : 'damaged'
  }
}
