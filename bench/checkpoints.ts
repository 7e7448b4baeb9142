// What memory that is kept costs at least: the same process in a bare container, saved and restored by its runtime alone,
// called by hand. In runc that is CRIU, in gVisor its own checkpoint. No network, no disk of its own, no record of what was done.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { criuPrograms } from '../src/engine/oci/checkpoint/criu.ts'
import { run } from '../src/lib/process.ts'
import { removeByHand, writeBundle } from './bundle.ts'
import { flagsByHand } from './by-hand.ts'
import { type Figures, timed } from './figures.ts'
import { FILLED_MS, holdingMemory, memories, pauseOf } from './forks.ts'

const TIMEOUT_MS = 60_000

/** As Berth does: no packet is held back meanwhile, which would start a program for each of two addresses. */
const CRIU_OPTIONS = 'network-lock skip\n'

type Options = { save: string[]; restore: string[] }

const options: Record<string, (images: string) => Options> = {
  runc(images) {
    const both = ['--manage-cgroups-mode', 'soft', '--image-path', images, '--work-path', images]
    return { save: both, restore: both }
  },
  gvisor(images) {
    const both = ['--direct', '--image-path', images]
    return { save: ['--compression', 'none', ...both], restore: both }
  },
}

/** For each size of memory: a copy of a container that goes on, its save alone, and one that ends and is restored. */
export async function measureCheckpoints(
  isolation: string,
  rootfs: string,
  rounds: number,
): Promise<Figures> {
  const optionsFor = options[isolation]
  if (!optionsFor) return {}
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-checkpoints-'))
  const env = { PATH: [...criuPrograms.map(dirname), process.env['PATH']].join(':') }
  const called = [...flagsByHand(isolation), '--root', join(directory, 'state')]
  const call = async (command: string, ...args: string[]) => {
    // A container keeps the files of who starts it, and none of outside can be saved.
    const script = 'exec "$@" </dev/null >/dev/null 2>/dev/null'
    const said = join(directory, 'said')
    const all = [...called, '--log', said, command, ...args]
    const { exitCode } = await run('sh', ['-c', script, 'sh', ...all], { timeoutMs: TIMEOUT_MS, env })
    if (exitCode !== 0) throw new Error(`${all.join(' ')} failed: ${await readFile(said, 'utf8')}`)
  }
  const figures: Figures = {}
  const samplesOf = (name: string) => (figures[name] ??= [])
  try {
    for (const { name, megabytes } of memories) {
      const bundle = join(directory, `${megabytes}`)
      const config = join(directory, 'criu.conf')
      await writeFile(config, CRIU_OPTIONS)
      const annotations = { 'org.criu.config': config }
      await writeBundle(bundle, { rootfs, args: holdingMemory(megabytes), annotations })
      let source = `source-${megabytes}`
      await call('run', '--detach', '--bundle', bundle, source)
      try {
        await delay(FILLED_MS)
        for (let round = 0; round < rounds; round += 1) {
          const images = join(directory, 'images')
          const { save, restore } = optionsFor(images)
          const again = async (id: string) => call('restore', '--detach', '--bundle', bundle, ...restore, id)
          const copy = `copy-${megabytes}-${round}`
          await mkdir(images)
          await timed(samplesOf(name), async () => {
            await timed(samplesOf(pauseOf(name)), () =>
              call('checkpoint', '--leave-running', ...save, source),
            )
            await again(copy)
          })
          await call('delete', '--force', copy)
          await rm(images, { recursive: true })

          const woken = `woken-${megabytes}-${round}`
          await mkdir(images)
          await timed(samplesOf(hibernateOf(megabytes)), async () => {
            await call('checkpoint', ...save, source)
            await call('delete', '--force', source)
          })
          source = woken
          await timed(samplesOf(wakeOf(megabytes)), () => again(woken))
          await rm(images, { recursive: true })
        }
      } finally {
        await call('delete', '--force', source)
      }
    }
    return figures
  } finally {
    await removeByHand(directory)
  }
}

export const hibernateOf = (megabytes: number) => `hibernate, ${megabytes} MB`
export const wakeOf = (megabytes: number) => `wake from disk, ${megabytes} MB`
