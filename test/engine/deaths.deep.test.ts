// Kills single processes of a run (reliability F7, I16), while it is running and while it is frozen. The end must be
// reported, nothing may be left, and the next run must start on the same disk.

import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { MachineRef } from '../../src/engine/engine.ts'
import { isEngineError } from '../../src/engine/errors.ts'
import { processesIn } from '../../src/engine/oci/kernel/cgroups.ts'
import { processesOf } from '../support/host-state.ts'
import { kernelTellsDeaths } from '../support/kill.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'
import { eventually, kindOf } from './suite.ts'

/** The limit of reliability F7. */
const TOLD_WITHIN_MS = 5000

const parts = { runc: ['init', 'monitor'], gvisor: ['sandbox', 'gofer', 'monitor'] } as const
type Part = (typeof parts)['runc' | 'gvisor'][number]

describe.each(['runc', 'gvisor'] as const)('with %s', (isolation) => {
  let host: HostEngine
  const suite = createHostSuite(isolation, () => host)

  beforeAll(async () => {
    host = await openHostEngine({ isolation })
    await suite.open()
  })
  afterEach(async () => await host.expectAsListed())
  afterAll(async () => await suite.close())

  async function kill({ id, generation }: MachineRef, part: Part): Promise<void> {
    const { container, pid } = host.paths.run(id, generation)
    const pids = {
      init: () => Number(readFileSync(pid, 'utf8')),
      sandbox: () => ofRun('runsc-sandbox'),
      gofer: () => ofRun('runsc-gofer'),
      monitor: async () => (await processesOf([`--cid ${container} `]))[0]?.pid,
    }
    const ofRun = (name: string) =>
      processesIn(host.cgroups, container).find((one) =>
        readFileSync(`/proc/${one}/cmdline`, 'utf8').startsWith(name),
      )
    const found = await pids[part]()
    if (!found) throw new Error(`the run has no ${part}`)
    process.kill(found, 'SIGKILL')
  }

  /** Writes all the time, so that the kill interrupts a write. */
  const writing = 'i=0; while :; do i=$((i+1)); echo $i >> /root/log; done'

  async function running(): Promise<MachineRef> {
    const ref = await suite.running({ entrypoint: ['bash', '-c', writing], cmd: [] })
    await eventually(async () => ((await suite.sh(ref, 'test -s /root/log')).exitCode === 0 ? true : null))
    return ref
  }

  async function expectNextRun(ref: MachineRef): Promise<void> {
    const next = await suite.start({ id: ref.id, generation: ref.generation + 1 })
    const { stdout } = await suite.sh(next, 'awk "{ if (\\$1 != NR) exit 1 }" /root/log && echo whole')
    expect(stdout).toBe('whole\n')
  }

  it.each(parts[isolation])('the death of its %s ends the run and is reported', async (part) => {
    const ref = await running()
    await kill(ref, part)
    const byHost = part === 'monitor' || kernelTellsDeaths()
    expect(await suite.exitOf(ref, TOLD_WITHIN_MS)).toMatchObject({ code: 137, oomKilled: false, byHost })
    expect(await suite.status(ref.id)).toMatchObject({ frozen: false })
    await expectNextRun(ref)
  })

  it.each(parts[isolation])('file writes succeed or fail with not_running when its %s dies', async (part) => {
    const ref = await running()
    const content = Buffer.alloc(900_000, 'x')
    const writes = Array.from({ length: 8 }, (_, index) =>
      suite
        .engine()
        .writeFile(ref, `/root/file-${index}`, content)
        .then(
          () => 'written',
          // Any other error fails the test with its message.
          (error: unknown) =>
            isEngineError(error, 'not_running')
              ? 'not_running'
              : error instanceof Error
                ? error.message
                : error,
        ),
    )
    await delay(30)
    await kill(ref, part)
    for (const outcome of await Promise.all(writes)) expect(['written', 'not_running']).toContain(outcome)
    await suite.exitOf(ref, TOLD_WITHIN_MS)
    await expectNextRun(ref)
  })

  it.each(parts[isolation])(
    'the death of its %s while frozen is reported at the latest when it is thawed',
    async (part) => {
      const ref = await running()
      await suite.engine().freeze(ref)
      await kill(ref, part)
      // The freezer of cgroup version 1 delays the kill until the thaw. The run must not appear to be alive even then.
      if (part === 'monitor') await suite.exitOf(ref, TOLD_WITHIN_MS)
      else expect(await kindOf(suite.engine().thaw(ref))).toBe('not_running')
      expect(await suite.exitOf(ref, TOLD_WITHIN_MS)).toMatchObject({ code: 137, oomKilled: false })
      await expectNextRun(ref)
    },
  )

  it('a frozen machine with a dead process can be stopped, restarted and destroyed without a thaw', async () => {
    const part = isolation === 'runc' ? 'init' : 'sandbox'
    const ref = await running()
    await suite.engine().freeze(ref)
    await kill(ref, part)
    await suite.engine().stop(ref, 1000)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'exited', frozen: false, exit: { code: 137 } })
    await expectNextRun(ref)
    const next = { ...ref, generation: 2 }
    await suite.engine().freeze(next)
    await kill(next, part)
    await expectNextRun(next)
    await suite.engine().freeze({ ...ref, generation: 3 })
    await kill({ ...ref, generation: 3 }, part)
    await suite.engine().destroy(ref.id)
    expect(await suite.status(ref.id)).toBeUndefined()
  })

  it('a run that ends itself is not reported as killed by the host, whatever its exit code', async () => {
    const ends = {
      // The kernel ignores signals of process 1 to itself in one class and not in the other.
      'by a signal to itself': 'kill -KILL $$; exit 137',
      'by a child that was killed': "sh -c 'kill -KILL $$'; exit $?",
      'by a number': 'exit 137',
    }
    for (const [how, script] of Object.entries(ends)) {
      const ref = await suite.running({ entrypoint: ['sh', '-c', script], cmd: [] })
      expect([how, await suite.exitOf(ref)]).toMatchObject([
        how,
        { code: 137, oomKilled: false, byHost: false },
      ])
    }
  })

  it('a death under a new engine is also reported as caused by the host', async () => {
    const ref = await running()
    await suite.reopen()
    await kill(ref, isolation === 'runc' ? 'init' : 'sandbox')
    const byHost = kernelTellsDeaths()
    expect(await suite.exitOf(ref, TOLD_WITHIN_MS)).toMatchObject({ code: 137, byHost })
  })

  it('a requested stop is not reported as caused by the host', async () => {
    const ref = await running()
    await suite.engine().stop(ref, 0)
    expect(await suite.exitOf(ref)).toMatchObject({ code: 137, byHost: false })
  })

  it('the ends of ten machines at once are all reported', async () => {
    const refs = await Promise.all(Array.from({ length: 10 }, async () => await suite.running()))
    await Promise.all(
      refs.map(async (ref, i) => await kill(ref, parts[isolation][i % parts[isolation].length] ?? 'monitor')),
    )
    for (const ref of refs) expect(await suite.exitOf(ref, TOLD_WITHIN_MS)).toMatchObject({ code: 137 })
  })
})
