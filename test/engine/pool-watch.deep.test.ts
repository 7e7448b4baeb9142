// What the pool does when the host's disk is or was full (reliability F17, decisions/disks-and-logs.md).

import { open, stat } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runOrThrow } from '../../src/lib/process.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'
import { eventually } from './suite.ts'

const readyMachines = { perKind: 1, memoryReserveMb: 0 }

let host: HostEngine
const suite = createHostSuite('runc', () => host)
beforeAll(async () => {
  host = await openHostEngine({ isolation: 'runc', poolGb: 4, poolSpace: 'allocated', readyMachines })
  await suite.open()
})
afterAll(async () => await suite.close())

const tool = async (command: string, ...args: string[]) =>
  await runOrThrow(command, args, { timeoutMs: 60_000 })

it('the pool preallocates its disk space and allocates it again after discards', async () => {
  const missing = async () => {
    const { size, blocks } = await stat(host.paths.poolFile)
    return size - blocks * 512
  }
  const whole = 64 * 1024 ** 2
  await eventually(async () => (await missing()) < whole || null, 60_000)
  await tool('dd', 'if=/dev/zero', `of=${host.paths.pool}/zeros`, 'bs=1M', 'count=128', 'conv=fsync')
  // Same effect as a discard, for loop devices that do not pass discards on.
  await eventually(async () => {
    await tool('fallocate', '--dig-holes', host.paths.poolFile)
    return (await missing()) >= whole || null
  }, 60_000)
  await eventually(async () => (await missing()) < whole || null, 60_000)
})

// Reliability F17.
it('a read-only pool is reported as full and remounted read-write once that is possible', async () => {
  const ref = await suite.running()
  // One that waits has the pool open too.
  await eventually(async () => (await host.engine().capacity()).readyMachines?.waiting || null, 60_000)
  const isUsed = await open(host.paths.pool)
  await tool('mount', '-o', 'remount,ro', host.paths.pool)
  await expect(host.engine().capacity()).rejects.toMatchObject({ kind: 'host_full' })
  await expect(suite.running()).rejects.toMatchObject({ kind: 'host_full' })
  await isUsed.close()
  await eventually(
    () =>
      host
        .engine()
        .capacity()
        .catch(() => null),
    60_000,
  )

  const next = await suite.start({ id: ref.id, generation: 2 })
  expect((await suite.sh(next, 'echo kept > /root/file; cat /root/file')).stdout).toBe('kept\n')
  await host.engine().destroy(ref.id)
})
