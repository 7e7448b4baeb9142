// What a fork with memory costs at least: the same process in a bare container of runc's, dumped with CRIU while it goes
// on, and restored beside it, by hand. No network, no disk of its own, no record of what was done.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { criuPrograms } from '../src/engine/oci/checkpoint/criu.ts'
import { run } from '../src/lib/process.ts'
import { writeBundle } from './bundle.ts'
import { type Figures, timed } from './figures.ts'
import { FILLED_MS, holdingMemory, memories } from './forks.ts'

const TIMEOUT_MS = 60_000

/** As Berth does: no packet is held back meanwhile, which would start a program for each of two addresses. */
const CRIU_OPTIONS = 'network-lock skip\n'

export async function measureCheckpoints(rootfs: string, rounds: number): Promise<Figures> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-criu-'))
  const env = { PATH: [...criuPrograms.map(dirname), process.env['PATH']].join(':') }
  const runc = async (command: string, ...args: string[]) => {
    // A container keeps the files of who starts it, and CRIU knows none of outside.
    const script = 'exec runc "$@" </dev/null >/dev/null 2>/dev/null'
    const said = join(directory, 'said')
    const all = ['--log', said, '--root', join(directory, 'state'), command, ...args]
    const { exitCode } = await run('sh', ['-c', script, 'runc', ...all], { timeoutMs: TIMEOUT_MS, env })
    if (exitCode !== 0) throw new Error(`runc ${command} failed: ${await readFile(said, 'utf8')}`)
  }
  const figures: Figures = {}
  try {
    for (const { name, megabytes } of memories) {
      const samples: number[] = []
      figures[name] = samples
      const bundle = join(directory, `${megabytes}`)
      const options = join(directory, 'criu.conf')
      await writeFile(options, CRIU_OPTIONS)
      const annotations = { 'org.criu.config': options }
      await writeBundle(bundle, { rootfs, args: holdingMemory(megabytes), annotations })
      const source = `source-${megabytes}`
      await runc('run', '--detach', '--bundle', bundle, source)
      try {
        await delay(FILLED_MS)
        for (let round = 0; round < rounds; round += 1) {
          const images = join(directory, 'images')
          const kept = ['--manage-cgroups-mode', 'soft', '--image-path', images, '--work-path', images]
          const copy = `copy-${megabytes}-${round}`
          await mkdir(images)
          await timed(samples, async () => {
            await runc('checkpoint', '--leave-running', ...kept, source)
            await runc('restore', '--detach', '--bundle', bundle, ...kept, copy)
          })
          await runc('delete', '--force', copy)
          await rm(images, { recursive: true })
        }
      } finally {
        await runc('delete', '--force', source)
      }
    }
    return figures
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
