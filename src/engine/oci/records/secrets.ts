// The secrets of what machines may reach (decisions/brokered-secrets.md). Records, which are on the disk, have none; they
// are in files of the run directory, for the next engine, and are lost at a reboot. Each start states them again.

import { rmSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import type { BrokeredSecret, MachineEgress } from '../../egress.ts'
import type { Paths } from '../paths.ts'

type MachineWithSecrets = { spec: { id: string }; egress: MachineEgress | null }

export async function keepSecrets(paths: Paths, { spec: { id }, egress }: MachineWithSecrets): Promise<void> {
  const path = paths.secretsOf(id)
  if (egress === null || egress.secrets.length === 0) return forgetSecrets(paths, id)
  await mkdir(paths.secrets, { recursive: true, mode: 0o700 })
  await writeFile(`${path}.new`, JSON.stringify(egress.secrets), { mode: 0o600 })
  await rename(`${path}.new`, path)
}

/** Returns the secrets that an earlier engine kept: none if the power was lost since, or if they cannot be read. */
export async function readSecrets(paths: Paths, id: string): Promise<BrokeredSecret[]> {
  try {
    return JSON.parse(await readFile(paths.secretsOf(id), 'utf8')) as BrokeredSecret[]
  } catch {
    return []
  }
}

/** In memory: to have another thread do it takes longer. */
export function forgetSecrets(paths: Paths, id: string): void {
  rmSync(paths.secretsOf(id), { force: true })
}
