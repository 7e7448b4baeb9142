// A destroyed machine leaves no data to the next one or on the host (reliability I11). The machine fills its disk, volume,
// shared memory and memory with a pattern, is suspended if its class supports it, and is then destroyed.
// If the host's loop devices do not pass discards on, freed blocks stay in the pool's file until they are overwritten. No
// machine can read them there, which is what the test checks.

import { randomBytes } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isolationClasses } from '../../src/engine/engine.ts'
import type { Paths } from '../../src/engine/oci/paths.ts'
import { poolDevice } from '../../src/engine/oci/storage/pool.ts'
import { run, runOrThrow } from '../../src/lib/process.ts'
import { keepsMemory } from '../support/memory-kept.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'

const TIMEOUT_MS = 60_000

describe.each(isolationClasses)('in a %s machine', (isolation) => {
  let host: HostEngine
  const suite = createHostSuite(isolation, () => host)
  beforeAll(async () => {
    host = await openHostEngine({ isolation, poolGb: 4 })
    await suite.open()
  })
  afterAll(async () => await suite.close())

  const tool = async (command: string, ...args: string[]) =>
    await runOrThrow(command, args, { timeoutMs: TIMEOUT_MS })
  const volume = { mount: '/data', gb: 1 }

  it('no data of a destroyed machine can be read by the next machine or found on the host', async () => {
    const pattern = randomBytes(16).toString('hex')
    /** Returns the engine's files that contain the pattern, except the pool. */
    const files = async () => {
      const { dataDir, runDir } = host.options
      const args = ['-rlaF', '--exclude=pool.btrfs', '--exclude-dir=pool', pattern, dataDir, runDir]
      return (await run('grep', args, { timeoutMs: TIMEOUT_MS })).stdout.split('\n').filter(Boolean)
    }
    const discards = await passesDiscards(host.paths)
    /** Counts NUL-separated pieces of the pool's file with the pattern, after freed blocks were discarded. */
    const pieces = async () => {
      await tool('btrfs', 'filesystem', 'sync', host.paths.pool)
      await tool('btrfs', 'subvolume', 'sync', host.paths.pool)
      await tool('btrfs', 'filesystem', 'sync', host.paths.pool)
      // The pool does this by itself within minutes (mounted with `discard=async`).
      if (discards) await tool('fstrim', host.paths.pool)
      const found = await run('grep', ['-czaF', pattern, host.paths.poolFile], { timeoutMs: TIMEOUT_MS })
      return Number(found.stdout)
    }

    const memory = ['perl', '-e', '$x = "$ENV{PATTERN}\\n" x 1e6; $| = 1; print "filled\n"; sleep']
    const ref = await suite.running({ entrypoint: memory, cmd: [], env: { PATTERN: pattern } }, { volume })
    await suite.logged(ref.id, 1)
    const fill =
      'for f in /root/a:32 /data/a:32 /dev/shm/a:8; do yes "$0" | head -c ${f#*:}M > ${f%:*}; done; sync'
    await suite.exec(ref, ['bash', '-c', fill, pattern], { timeoutMs: TIMEOUT_MS })
    const { dir } = host.paths.run(ref.id, ref.generation)
    const machine = host.paths.machine(ref.id)
    // A machine chooses the mode of its volume, but the parent directory is closed to others.
    for (const path of [dir, machine.dir, machine.disk, host.paths.volumes])
      expect([path, (await stat(path)).mode & 0o077]).toEqual([path, 0])
    expect((await suite.sh(ref, 'ulimit -c')).stdout).toBe('0\n')

    // Control: the pattern can be found while the machine exists.
    const kept = await host.engine().suspend(ref, 0)
    expect(kept).toBe(keepsMemory[isolation])
    if (kept) expect((await files()).join()).toContain('/memory/')
    expect(await pieces()).toBeGreaterThan(0)

    await host.engine().destroy(ref.id)
    const next = await suite.running({}, { volume, networkGroup: 2 })
    const look = [
      'for f in /root /data; do fallocate -l 300M $f/room; grep -czaF "$0" $f/room; rm $f/room; done',
      'ls -A /dev/shm /tmp; grep -rlaF "$0" /root /data /run /var /etc',
    ]
    const seen = await suite.exec(next, ['bash', '-c', look.join('\n'), pattern], { timeoutMs: TIMEOUT_MS })
    expect(seen.stdout).toBe('0\n0\n/dev/shm:\n\n/tmp:\n')
    expect(await files()).toEqual([])
    if (discards) expect(await pieces()).toBe(0)
    await host.engine().destroy(next.id)
  })
})

/** Returns whether the pool's loop device supports discards. Not every file system does. */
async function passesDiscards(paths: Paths): Promise<boolean> {
  const device = await poolDevice(paths)
  if (device === null) throw new Error('the pool is not mounted')
  const most = await readFile(
    `/sys/dev/block/${device.major}:${device.minor}/queue/discard_max_bytes`,
    'utf8',
  )
  return Number(most) > 0
}
