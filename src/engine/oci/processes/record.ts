// The record of a background process, which outlives its run and its engine. It is in its machine's directory, so
// that it moves with the machine. It contains no environment, no input, and no passwords of its command.

import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeDurably } from '../../../lib/write-durably.ts'
import { removeTree } from '../kernel/mounts.ts'
import type { Paths } from '../paths.ts'

const recordSchema = z.object({
  id: z.string(),
  /** The generation of its run. */
  generation: z.number(),
  shown: z.array(z.string()),
  cwd: z.string().nullable(),
  keepsAwake: z.boolean(),
  /** Of an earlier release: none. */
  tag: z.string().nullable().default(null),
  takesInput: z.boolean().default(false),
  awakeUntil: z.coerce.date().nullable().default(null),
  state: z.enum(['running', 'exited', 'lost']),
  exitCode: z.number().nullable(),
  pid: z.number().nullable(),
  startedAt: z.coerce.date(),
  endedAt: z.coerce.date().nullable(),
})
export type ProcessRecord = z.infer<typeof recordSchema>

const RECORD = 'process.json'

export async function saveProcess(paths: Paths, machineId: string, record: ProcessRecord): Promise<void> {
  const directory = paths.machine(machineId).process(record.id)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await writeDurably(join(directory, RECORD), JSON.stringify(record), 0o600)
}

export async function removeProcess(paths: Paths, machineId: string, id: string): Promise<void> {
  await removeTree(paths.machine(machineId).process(id))
}

/**
 * Oldest first. A process with an unreadable record was never reported, or the power failed: its files are removed.
 */
export async function loadProcessRecords(paths: Paths, machineId: string): Promise<ProcessRecord[]> {
  const { processes, process } = paths.machine(machineId)
  const names = await readdir(processes).catch((): string[] => [])
  const found: ProcessRecord[] = []
  for (const name of names) {
    const text = await readFile(join(process(name), RECORD), 'utf8').catch(() => '')
    const record = parseRecord(text)
    if (record?.id === name) found.push(record)
    else await removeProcess(paths, machineId, name)
  }
  return found.toSorted((a, b) => a.startedAt.getTime() - b.startedAt.getTime() || (a.id < b.id ? -1 : 1))
}

function parseRecord(text: string): ProcessRecord | null {
  try {
    return recordSchema.parse(JSON.parse(text))
  } catch {
    return null
  }
}
