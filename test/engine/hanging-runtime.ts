// Runtimes that hang when a test wants it: scripts in place of runc and runsc that hand every call on to the
// real one, but for the calls of one machine that a file names.

import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processesOf } from '../support/host-state.ts'
import { runscCandidates } from '../../src/engine/oci/probes/runsc-candidates.ts'
import { type DriverOptions, driverDefaults } from '../../src/engine/oci/runtime/driver.ts'

export type RuntimeVerb = 'create' | 'start' | 'kill' | 'exec'

export type HangingRuntimes = {
  options: DriverOptions
  /** From now on these calls for this machine neither return nor heed SIGTERM, and leave a child. */
  hang(verb: RuntimeVerb, id: string): Promise<void>
  /** Those that hang go on doing so. */
  heal(): Promise<void>
  /** Their command lines. */
  hung(): Promise<string[]>
  remove(): Promise<void>
}

export async function makeHangingRuntimes(deadlineMs: number): Promise<HangingRuntimes> {
  const directory = await mkdtemp('/var/tmp/berth-hanging-')
  const wishes = join(directory, 'wishes')
  await mkdir(wishes)
  const script = async (name: 'runc' | 'runsc') => {
    const path = join(directory, name)
    await writeFile(path, scriptAround(await programOf(name), { path, wishes }), { mode: 0o755 })
    return path
  }
  const [runc, runsc] = [await script('runc'), await script('runsc')]
  return {
    options: { ...driverDefaults, runc, runsc, deadlineMs },
    hang: async (verb, id) => await writeFile(join(wishes, `${verb} ${id}`), ''),
    heal: async () => {
      for (const wish of await readdir(wishes)) await rm(join(wishes, wish))
    },
    hung: async () =>
      (await processesOf([directory]))
        .map(({ command }) => command)
        .filter((command) => /^(?:\/bin\/sh|tail) /.test(command)),
    remove: async () => await rm(directory, { recursive: true }),
  }
}

/** `path`: by which what hangs is found, wherever the engine keeps the script. */
function scriptAround(real: string, { path, wishes }: { path: string; wishes: string }): string {
  return `#!/bin/sh
trap '' TERM
for verb in "$@"; do
  for name in "$@"; do
    if [ -e "${wishes}/$verb \${name%-*}" ]; then tail -f "${path}" >&2 & tail -f "${path}" >&2; fi
  done
done
trap - TERM
exec ${real} "$@"
`
}

async function programOf(name: 'runc' | 'runsc'): Promise<string> {
  if (name === 'runc') return driverDefaults.runc
  return (await runscCandidates(driverDefaults))[0]?.path ?? '/usr/bin/runsc'
}
