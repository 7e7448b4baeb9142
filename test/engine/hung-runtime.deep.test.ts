// Hanging runtimes and monitors, and stopped sandboxes (reliability F8): every call ends, a machine can always be
// destroyed, other machines are not affected, and nothing is left over.

import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { MachineRef } from '../../src/engine/engine.ts'
import { processesIn } from '../../src/engine/oci/kernel/cgroups.ts'
import { noReadyMachines } from '../../src/engine/oci/warm-pool/pool.ts'
import { processesOf } from '../support/host-state.ts'
import { type HangingRuntimes, makeHangingRuntimes, type RuntimeVerb } from './hanging-runtime.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'
import { eventually, kindOf } from './suite.ts'

const DEADLINE_MS = 4000
/** The limit for a destroy in reliability F8, used as the timeout of the test. */
const DESTROY_MS = 30_000

describe.each(['runc', 'gvisor'] as const)('with %s', (isolation) => {
  let runtimes: HangingRuntimes
  let host: HostEngine
  const suite = createHostSuite(isolation, () => host)
  const engine = suite.engine
  /** Code that both classes share is tested with the faster class only. */
  const once = it.skipIf(isolation === 'gvisor')
  /** In runc the engine starts a container itself. */
  const verbs: RuntimeVerb[] = isolation === 'runc' ? ['create'] : ['create', 'start']
  const startedByRuntime = it.skipIf(isolation === 'runc')

  beforeAll(async () => {
    runtimes = await makeHangingRuntimes(DEADLINE_MS)
    // With runsc for commands, because its exec is one of the calls that hang.
    host = await openHostEngine({
      isolation,
      runtimes: { ...runtimes.options, gvisorCommands: 'runsc' },
      // The runtime hangs for a machine by its id, which it does not know of one that was made ahead.
      readyMachines: noReadyMachines,
    })
    await suite.open()
  })
  afterEach(async () => {
    await runtimes.heal()
    await host.expectAsListed()
    expect(await runtimes.hung()).toEqual([])
  })
  afterAll(async () => {
    await suite.close()
    await runtimes.remove()
  })

  const signalRun = ({ id, generation }: MachineRef, signal: NodeJS.Signals) => {
    for (const pid of processesIn(host.cgroups, host.paths.run(id, generation).container)) {
      try {
        process.kill(pid, signal)
      } catch (error) {
        // Those of a sandbox end with it.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
    }
  }

  const destroyed = async (id: string) => {
    await engine().destroy(id)
    expect(await suite.status(id)).toBeUndefined()
  }

  it.each(verbs)(
    'a start whose runtime %s hangs fails at its deadline, and the next start succeeds',
    async (verb) => {
      const { id } = await suite.create()
      await runtimes.hang(verb, id)
      expect(await kindOf(suite.start({ id, generation: 1 }))).toBe('start_failed')
      await host.expectAsListed()
      expect(await runtimes.hung()).toEqual([])
      await runtimes.heal()
      const ref = await suite.start({ id, generation: 2 })
      expect(await suite.sh(ref, 'echo up')).toMatchObject({ stdout: 'up\n' })
    },
  )

  startedByRuntime(
    'a machine that dies during its start fails the start, and the next start succeeds',
    async () => {
      const ref = { id: (await suite.create()).id, generation: 1 }
      await runtimes.hang('start', ref.id)
      const start = kindOf(suite.start(ref))
      await eventually(async () => ((await runtimes.hung()).length > 0 ? true : null))
      signalRun(ref, 'SIGKILL')
      expect(await start).toBe('start_failed')
      await runtimes.heal()
      const again = await suite.start({ ...ref, generation: 2 })
      expect(await suite.sh(again, 'echo up')).toMatchObject({ stdout: 'up\n' })
    },
  )

  it.each(verbs)(
    'a machine whose runtime %s hangs can be destroyed at once, which fails its pending starts',
    async (verb) => {
      const { id } = await suite.create()
      await runtimes.hang(verb, id)
      const starts = [1, 2].map((generation) => kindOf(suite.start({ id, generation })))
      await delay(500)
      await destroyed(id)
      expect(await Promise.all(starts)).toEqual(['start_failed', 'unknown_machine'])
    },
    DESTROY_MS,
  )

  once('a stop whose SIGTERM hangs kills the machine after its grace period', async () => {
    const ref = await suite.running()
    await runtimes.hang('kill', ref.id)
    await engine().stop(ref, 500)
    expect(await suite.status(ref.id)).toMatchObject({
      state: 'exited',
      exit: { code: 137, oomKilled: false },
    })
    expect(await runtimes.hung()).toEqual([])
  })

  once(
    'a machine can be destroyed during a stop with a long grace period',
    async () => {
      const ref = await suite.running({
        entrypoint: ['bash', '-c', 'trap "" TERM; while :; do sleep 1; done'],
        cmd: [],
      })
      const stop = engine().stop(ref, 300_000)
      await delay(300)
      await destroyed(ref.id)
      await stop
    },
    DESTROY_MS,
  )

  it('a command whose runtime hangs times out, and its machine continues to run', async () => {
    const ref = await suite.running()
    await runtimes.hang('exec', ref.id)
    const result = await suite.sh(ref, 'echo never', { timeoutMs: 1000 })
    expect(result).toMatchObject({ timedOut: true, stdout: '' })
    await runtimes.heal()
    expect(await suite.sh(ref, 'echo up')).toMatchObject({ stdout: 'up\n' })
  })

  once('a command whose runtime hangs ends when its machine is destroyed', async () => {
    const ref = await suite.running()
    await runtimes.hang('exec', ref.id)
    const command = kindOf(suite.sh(ref, 'echo never', { timeoutMs: 600_000 }))
    await delay(300)
    await destroyed(ref.id)
    expect(await command).toBe('run_ended')
  })

  once('other machines are created, used and destroyed while every call for one machine hangs', async () => {
    const [hung, other] = [await suite.running(), await suite.running()]
    const { id: starting } = await suite.create()
    for (const verb of ['exec', 'kill'] as const) await runtimes.hang(verb, hung.id)
    await runtimes.hang('create', starting)
    const ends = { start: false, command: false, stop: false }
    const calls = [
      kindOf(suite.start({ id: starting, generation: 1 })).finally(() => (ends.start = true)),
      kindOf(suite.sh(hung, 'true', { timeoutMs: 600_000 })).finally(() => (ends.command = true)),
      engine()
        .stop(hung, 600_000)
        .finally(() => (ends.stop = true)),
    ]
    expect(await suite.sh(other, 'echo up')).toMatchObject({ stdout: 'up\n' })
    await engine().freeze(other)
    await engine().thaw(other)
    const third = await suite.running()
    expect(await suite.sh(third, 'echo up')).toMatchObject({ stdout: 'up\n' })
    await destroyed(third.id)
    expect(ends).toEqual({ start: false, command: false, stop: false })
    await Promise.all([destroyed(hung.id), destroyed(starting)])
    await Promise.all(calls)
  })

  it('a stopped sandbox lets commands time out and can be frozen, thawed and stopped', async () => {
    const ref = await suite.running()
    const before = suite.sh(ref, 'sleep 600', { timeoutMs: 1500 })
    await delay(500)
    signalRun(ref, 'SIGSTOP')
    expect(await before).toMatchObject({ timedOut: true })
    if (isolation === 'gvisor') {
      expect(await suite.sh(ref, 'echo never', { timeoutMs: 500 })).toMatchObject({
        timedOut: true,
        stdout: '',
      })
    }
    await engine().freeze(ref)
    await engine().thaw(ref)
    await engine().stop(ref, 500)
    expect(await suite.status(ref.id)).toMatchObject({
      state: 'exited',
      exit: { code: 137, oomKilled: false },
    })
    const again = await suite.start({ id: ref.id, generation: 2 })
    expect(await suite.sh(again, 'echo up')).toMatchObject({ stdout: 'up\n' })
  })

  it(
    'a stopped sandbox can be destroyed, which ends its pending command',
    async () => {
      const ref = await suite.running()
      const command = kindOf(suite.sh(ref, 'sleep 600', { timeoutMs: 600_000 }))
      await delay(500)
      signalRun(ref, 'SIGSTOP')
      await destroyed(ref.id)
      expect(await command).toBe('run_ended')
    },
    DESTROY_MS,
  )

  describe('a stopped monitor', () => {
    const stopMonitor = async ({ id, generation }: MachineRef) => {
      const { container } = host.paths.run(id, generation)
      const [monitor] = await processesOf([`--cid ${container} `])
      if (!monitor) throw new Error('the run has no monitor')
      process.kill(monitor.pid, 'SIGSTOP')
    }

    it('does not prevent the end of the run from being reported', async () => {
      const ref = await suite.running({ cmd: ['sh', '-c', 'sleep 1; exit 3'] })
      await stopMonitor(ref)
      // Only the monitor knows the exit code.
      expect(await suite.exitOf(ref)).toMatchObject({ code: 137, oomKilled: false })
      await suite.start({ id: ref.id, generation: 2 })
    })

    once('does not prevent its machine from being stopped, restarted and destroyed', async () => {
      const ref = await suite.running()
      await stopMonitor(ref)
      await engine().stop(ref, 500)
      expect(await suite.status(ref.id)).toMatchObject({
        state: 'exited',
        exit: { code: 137, oomKilled: false },
      })
      const again = await suite.start({ id: ref.id, generation: 2 })
      await stopMonitor(again)
      await destroyed(again.id)
      await eventually(async () => ((await processesOf([`--cid ${ref.id}-`])).length === 0 ? true : null))
    })
  })
})
