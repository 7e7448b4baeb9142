// Machines made ahead (decisions/creates.md) among what a host has. Those that wait belong to no machine; a run that began
// as one goes by the name under which it was made.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineRecord } from '../../src/engine/oci/records/record.ts'

/** The runtime's name of a machine's first run, if that was made ahead. */
export async function madeAsOf(dataDir: string, id: string): Promise<string | undefined> {
  const text = await readFile(join(dataDir, 'machines', id, 'machine.json'), 'utf8').catch(() => null)
  return text === null ? undefined : (JSON.parse(text) as MachineRecord).madeAs
}

/** Leaves out what belongs to those that nobody has taken. `wanted` has the facts of those that were. */
export function withoutWaiting(found: string[], wanted: string[]): string[] {
  const waiting = found
    .map((fact) => /^(ready-[0-9a-f]+)-1 is behind (.*)$/.exec(fact))
    .filter((match) => match !== null && !wanted.includes(match[0]))
    .map((match) => [match?.[1] ?? '', match?.[2] ?? ''] as const)
  return found.filter(
    (fact) =>
      !waiting.some(([name, address]) => fact.includes(name) || fact.split(/[ ,]+/).includes(address)),
  )
}
