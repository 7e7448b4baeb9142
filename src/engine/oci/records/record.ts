// The engine's record of a machine, on disk so that the next engine can adopt it. It contains no secrets.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineEgress } from '../../egress.ts'
import type { Exit, MachineSpec } from '../../engine.ts'
import type { Paths, RunPaths } from '../paths.ts'
import { keepSecrets } from './secrets.ts'

export type MachineRecord = {
  spec: MachineSpec
  address: string
  /** The number of forks between the machine and its first ancestor. */
  forkGeneration: number
  /** The newest run; 0 before the first. */
  generation: number
  /** `starting`: effects of a start may exist, but none is certain. On the disk, of a run that goes on, too (`markRunning`). */
  state: 'created' | 'starting' | 'running' | 'exited' | 'lost'
  /** The fingerprint of its newest run (start-fingerprint.ts); absent before the first. */
  beginning?: string
  /** Whether it resumed with the memory of an earlier run. */
  resumed?: boolean
  /** The size of /dev/shm in its newest run; absent in runs of earlier versions (storage/shm.ts). */
  shmBytes?: number
  /** conmon, with its start time, so that a reused pid is not taken for it. */
  monitor: { pid: number; startTime: string } | null
  exit: Exit | null
  /** The program of its newest run (`Driver`); absent in runs of earlier versions. */
  program?: string | null
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
 * (lifecycle/aside.ts).
 */
export async function beginMachine(paths: Paths, id: string): Promise<void> {
  await mkdir(paths.machine(id).logs, { recursive: true, mode: 0o700 })
}

/**
 * Flushed under a temporary name and renamed: a reader sees the old record or the new one, even after a power loss.
 */
export async function saveRecord(paths: Paths, record: MachineRecord): Promise<void> {
  const machine = paths.machine(record.spec.id)
  await keepSecrets(paths, record)
  const temporary = `${machine.record}.new`
  const { egress } = record
  const kept = JSON.stringify({ ...record, egress: egress && { ...egress, secrets: [] } })
  const write = () => writeFile(temporary, kept, { mode: 0o600, flush: true })
  await write().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    await mkdir(machine.logs, { recursive: true, mode: 0o700 })
    await write()
  })
  await rename(temporary, machine.record)
}

/**
 * Says that the run which the record on the disk calls `starting` goes on. In the run's own directory, which is in memory and
 * is lost with the power, as the run is: so no start waits for the disk once more (decisions/machines.md).
 */
export function markRunning({ running }: RunPaths, monitor: MachineRecord['monitor']): void {
  writeFileSync(`${running}.new`, JSON.stringify(monitor), { mode: 0o600 })
  renameSync(`${running}.new`, running)
}

/** A record read from the disk that says `starting` is `running` if its run left that mark. */
export function applyRunningMark({ running }: RunPaths, record: MachineRecord): void {
  if (record.state !== 'starting' || !existsSync(running)) return
  const monitor = JSON.parse(readFileSync(running, 'utf8')) as MachineRecord['monitor']
  Object.assign(record, { state: 'running', monitor })
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
