import { expect, test } from 'vitest'
import type { MachineStatus } from '../../../src/engine/engine.ts'
import { eventually, type Suite } from '../suite.ts'

export function exitClaims(suite: Suite): void {
  /** Statuses that a watcher has been told, of one machine. */
  function watch(signal: AbortSignal) {
    const told: MachineStatus[] = []
    const watching = suite.engine().watchExits((status) => void told.push(status), signal)
    return { of: (id: string) => told.filter((status) => status.id === id), watching }
  }

  test('a process that exits by itself leaves its exit code', async () => {
    for (const code of [0, 3, 255]) {
      const ref = await suite.running({ cmd: ['sh', '-c', `exit ${code}`] })
      const before = Date.now()
      const exit = await suite.exitOf(ref)
      expect(exit).toMatchObject({ code, oomKilled: false })
      expect(Math.abs(exit.at.getTime() - before)).toBeLessThan(30_000)
    }
  })

  test('a process killed by a signal leaves 128 plus the signal number', async () => {
    for (const [name, number] of Object.entries({ KILL: 9, SEGV: 11, TERM: 15 })) {
      // As a child of the first process: the kernel spares that one from its own signals.
      const ref = await suite.running({
        entrypoint: ['sh', '-c', `sh -c 'kill -${name} $$'; exit $?`],
        cmd: [],
      })
      expect([name, (await suite.exitOf(ref)).code]).toEqual([name, 128 + number])
    }
  })

  test('a watcher is told of each run that ends', async () => {
    const abort = new AbortController()
    const watcher = watch(abort.signal)
    const ref = await suite.running({ cmd: ['sh', '-c', 'exit 4'] })
    await suite.exitOf(ref)
    await eventually(async () => watcher.of(ref.id)[0] ?? null)
    await suite.start({ id: ref.id, generation: 2 }, { cmd: ['sh', '-c', 'exit 5'] })
    const last = await eventually(
      async () => watcher.of(ref.id).find((status) => status.generation === 2) ?? null,
    )
    expect(last).toMatchObject({ state: 'exited', exit: { code: 5, oomKilled: false } })
    expect(last.exit?.at).toBeInstanceOf(Date)
    abort.abort()
    await watcher.watching
  })

  test('a new watcher is told of runs that ended before', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', 'exit 6'] })
    await suite.exitOf(ref)
    const abort = new AbortController()
    const watcher = watch(abort.signal)
    const told = await eventually(async () => watcher.of(ref.id)[0] ?? null)
    expect(told).toMatchObject({ generation: 1, state: 'exited', exit: { code: 6 } })
    abort.abort()
    await watcher.watching
  })

  test('a watcher that aborts is told nothing more, and its call returns', async () => {
    const abort = new AbortController()
    const watcher = watch(abort.signal)
    abort.abort()
    await watcher.watching
    const ref = await suite.running({ cmd: ['sh', '-c', 'exit 0'] })
    await suite.exitOf(ref)
    expect(watcher.of(ref.id)).toEqual([])
  })

  test('a stop is reported like any other exit', async () => {
    const abort = new AbortController()
    const watcher = watch(abort.signal)
    const ref = await suite.running()
    await suite.engine().stop(ref, 0)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'exited', exit: { oomKilled: false } })
    expect(await eventually(async () => watcher.of(ref.id)[0] ?? null)).toMatchObject({ generation: 1 })
    abort.abort()
    await watcher.watching
  })
}
