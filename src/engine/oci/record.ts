// What the engine knows of a machine, on disk so that the next engine can adopt it. Secrets are not in it.

import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import type { Exit, MachineSpec } from '../engine.ts'
import type { Paths } from './paths.ts'

export type MachineRecord = {
  spec: MachineSpec
  address: string
  /** The newest run; 0 before the first. */
  generation: number
  /** `starting`: effects of a start may exist, none is promised. */
  state: 'created' | 'starting' | 'running' | 'exited' | 'lost'
  /** conmon, and the kernel's start time of it, so that a reused pid is not taken for it. */
  monitor: { pid: number; startTime: string } | null
  exit: Exit | null
}

/** Written under a temporary name and renamed: a reader sees the old record or the new one. */
export async function saveRecord(paths: Paths, record: MachineRecord): Promise<void> {
  const machine = paths.machine(record.spec.id)
  await mkdir(machine.logs, { recursive: true, mode: 0o700 })
  const temporary = `${machine.record}.new`
  await writeFile(temporary, JSON.stringify(record), { mode: 0o600 })
  await rename(temporary, machine.record)
}

/** Every machine with a readable record, and the ids of those whose making was cut short. */
export async function loadRecords(paths: Paths): Promise<{ records: MachineRecord[]; unfinished: string[] }> {
  const records: MachineRecord[] = []
  const unfinished: string[] = []
  for (const id of await readdir(paths.machines)) {
    const record = await readRecord(paths.machine(id).record)
    if (record) records.push(record)
    else unfinished.push(id)
  }
  return { records, unfinished }
}

async function readRecord(path: string): Promise<MachineRecord | null> {
  try {
    const record = JSON.parse(await readFile(path, 'utf8')) as MachineRecord
    return { ...record, exit: record.exit && { ...record.exit, at: new Date(record.exit.at) } }
  } catch {
    return null
  }
}
