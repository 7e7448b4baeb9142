// What a container costs at least: the same steps with the runtime alone, called by hand. It has no disk of its own, no
// network, no limits, no log, and no record of what was done.

import { existsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BUILT_RUNSC } from '../src/engine/oci/runsc-build/pinned.ts'
import { run } from '../src/lib/process.ts'
import { removeByHand, writeBundle } from './bundle.ts'
import { type Figures, measure } from './figures.ts'

const TIMEOUT_MS = 60_000

/** As Berth starts them. BERTH_RUNSC chooses another gVisor than the built one, for Berth too. */
const PROGRAMS: Record<string, string[]> = {
  runc: ['runc'],
  gvisor: [
    process.env['BERTH_RUNSC'] ?? (existsSync(BUILT_RUNSC) ? BUILT_RUNSC : 'runsc'),
    '--platform=systrap',
    '--network=none',
    '--directfs=false',
    '--overlay2=none',
    '--ignore-cgroups',
  ],
}

/** The program of a class and its flags. */
export function flagsByHand(isolation: string): string[] {
  return PROGRAMS[isolation] ?? []
}

export async function measureByHand(isolation: string, rootfs: string, rounds: number): Promise<Figures> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-hand-'))
  const bundle = join(directory, 'bundle')
  let made = 0
  const call = async (command: string, ...args: string[]) => {
    // A container keeps the files of who starts it.
    const script = 'exec "$@" </dev/null >/dev/null 2>/dev/null'
    const program = [...flagsByHand(isolation), '--root', join(directory, 'state'), command, ...args]
    const { exitCode } = await run('sh', ['-c', script, 'sh', ...program], { timeoutMs: TIMEOUT_MS })
    if (exitCode !== 0) throw new Error(`${program.join(' ')} ended with ${exitCode}`)
  }
  try {
    await writeBundle(bundle, { rootfs, args: ['sleep', 'infinity'] })
    return await measure(rounds, {
      create: async () => {
        const id = `hand-${(made += 1)}`
        await call('run', '--detach', '--bundle', bundle, id)
        return id
      },
      exec: (id) => call('exec', id, 'echo', 'hello'),
      destroy: (id) => call('delete', '--force', id),
    })
  } finally {
    await removeByHand(directory)
  }
}
