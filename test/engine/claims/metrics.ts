// Resource usage of a machine, measured without a process inside it.

import { expect, test } from 'vitest'
import { eventually, kindOf, type Suite } from '../suite.ts'

const MB = 1024 ** 2
const GB = 1024 ** 3

/** For every engine. */
export function metricsClaims(suite: Suite): void {
  const metrics = async (id: string) => await suite.engine().metrics(id)

  test('a running machine reports its usage and the limits of its size', async () => {
    const ref = await suite.running({}, { volume: { mount: '/data', gb: 2 } })
    const { at, run, disk, volume } = await metrics(ref.id)
    expect(Math.abs(at.getTime() - Date.now())).toBeLessThan(600_000)
    expect(run?.generation).toBe(1)
    expect(run?.memory.limitBytes).toBeGreaterThanOrEqual(256 * MB)
    expect(run?.memory.usedBytes).toBeGreaterThan(0)
    expect(run?.memory.usedBytes).toBeLessThan(run?.memory.limitBytes ?? 0)
    expect(run?.pids.count).toBeGreaterThan(0)
    expect(run?.pids.limit).toBeGreaterThanOrEqual(128)
    expect(run?.network).not.toBeNull()
    expect([disk.limitBytes, volume?.limitBytes]).toEqual([GB, 2 * GB])
  })

  test('a frozen machine reports its usage and stays frozen', async () => {
    const ref = await suite.running()
    await suite.engine().freeze(ref)
    const first = await metrics(ref.id)
    await new Promise((resolve) => setTimeout(resolve, 150))
    const second = await metrics(ref.id)
    expect(second.run?.cpu).toEqual(first.run?.cpu)
    expect(second.run?.memory.usedBytes).toBeGreaterThan(0)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running', frozen: true })
  })

  test('a stopped machine reports only its disk, and an unknown machine is an error', async () => {
    const { id } = await suite.create()
    expect(await metrics(id)).toMatchObject({ run: null, disk: { limitBytes: GB }, volume: null })
    await suite.start({ id, generation: 1 })
    await suite.engine().stop({ id, generation: 1 }, 0)
    await eventually(async () => ((await metrics(id)).run === null ? true : null))
    expect(await kindOf(metrics('unit_unknown'))).toBe('unknown_machine')
  })
}

/** For engines with real processes. */
export function countedClaims(suite: Suite): void {
  const metrics = async (id: string) => await suite.engine().metrics(id)

  test('CPU, memory, processes, disk and network usage are counted', async () => {
    const ref = await suite.running()
    const before = (await metrics(ref.id)).run
    const usedMs = async () => ((await metrics(ref.id)).run?.cpu.usedMs ?? 0) - (before?.cpu.usedMs ?? 0)
    // On a machine that does other things besides, a second of a busy loop is a part of a second of processor time.
    for (let rounds = 0; rounds < 20 && (await usedMs()) <= 500; rounds += 1)
      await suite.sh(ref, 'timeout 1 sh -c "while :; do :; done"')
    await suite.sh(ref, 'dd if=/dev/zero of=/root/large bs=1M count=64 && sync')
    await suite.sh(
      ref,
      'head -c 96M /dev/zero > /dev/shm/held; for i in 1 2 3; do sleep 300 & done >/dev/null 2>&1',
    )
    await suite.sh(ref, 'for i in 1 2 3; do echo x > /dev/udp/10.255.255.1/9; done 2>/dev/null || true')
    const after = await eventually(async () => {
      const now = await metrics(ref.id)
      // The accounts of the disk are written with the next commit of the file system, which `sync` asks for in runc.
      return (now.disk.usedBytes ?? 0) > 60 * MB ? now : null
    }, 45_000)
    const used = (after.run?.cpu.usedMs ?? 0) - (before?.cpu.usedMs ?? 0)
    expect(used).toBeGreaterThan(500)
    expect(used).toBeLessThan(20_000)
    expect((after.run?.memory.usedBytes ?? 0) - (before?.memory.usedBytes ?? 0)).toBeGreaterThan(60 * MB)
    expect(after.run?.memory.peakBytes ?? Infinity).toBeGreaterThan(96 * MB)
    expect(after.run?.pids.count).toBeGreaterThanOrEqual(before?.pids.count ?? 0)
    expect(after.disk.usedBytes).toBeLessThan(200 * MB)
  })
}
