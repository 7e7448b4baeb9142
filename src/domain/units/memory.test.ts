// A hibernated unit keeps its memory (design 3, reliability F10, F12): it wakes where it was, or starts again and
// loses nothing but its memory.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { findUnsettled } from '../../../test/support/invariants.ts'
import { SECOND } from '../../lib/clock.ts'
import { startJobs } from '../../jobs.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { execInUnit } from './exec.ts'
import { hibernateUnit } from './activity/hibernate.ts'
import { readFile, writeFile } from './files.ts'
import { getUnit } from './get.ts'
import { sleepUnit } from './sleep.ts'
import { startUnit } from './start.ts'
import { stopUnit } from './stop.ts'

/** With and without a frozen phase before. */
describe.each(['1h', '0s'])('a unit that was frozen for %s and then hibernated', (frozenFor) => {
  let domain: TestDomain
  let caller: Caller
  let loops: ReturnType<typeof startJobs>
  beforeAll(async () => {
    domain = await createTestDomain({ BERTH_FROZEN_FOR: frozenFor })
    loops = startJobs(domain.app)
  })
  beforeEach(async () => {
    domain.engine.setMemory(true)
    caller = await domain.makeCaller()
  })
  afterAll(async () => {
    await loops.stop()
    await domain.close()
  })

  const run = async (id: string, ...cmd: string[]) =>
    await execInUnit(domain.app, caller, id, { cmd, timeoutMs: 5_000 })
  const remembers = async (id: string) => (await run(id, 'cat', '/dev/shm/mark')).stdout === 'remembered\n'
  const remember = async (id: string) => await run(id, 'sh', '-c', 'echo remembered > /dev/shm/mark')
  const machineOf = (id: string) => domain.engine.machines().find((machine) => machine.id === id)

  async function makeSleeper(spec: object = {}): Promise<string> {
    const { id } = await makeUnit(domain.app, caller, { ...spec })
    await remember(id)
    await writeFile(domain.app, caller, id, '/data/kept', Buffer.from('kept'))
    await fallAsleep(id)
    return id
  }

  async function fallAsleep(id: string): Promise<void> {
    await sleepUnit(domain.app, caller, id, { sleep: '1h', stack: false, now: true })
    const unit = await findUnitOfAnyTeam(domain.app.db, { id, now: domain.clock.now() })
    if (unit?.frozen) await hibernateUnit(domain.app, unit)
    expect(machineOf(id)?.state).toBe('exited')
  }

  it('stays asleep, and the end of its machine is not an exit', async () => {
    const id = await makeSleeper()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await getUnit(domain.app, caller, id)).toMatchObject({
      state: 'sleeping',
      stoppedReason: 'idle',
      lastExit: null,
      error: null,
    })
    expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
  })

  it('wakes with its memory', async () => {
    const id = await makeSleeper()
    expect(await remembers(id)).toBe(true)
    expect(machineOf(id)?.generation).toBe(2)
    await fallAsleep(id)
    expect(await remembers(id)).toBe(true)
  })

  it('wakes with its disk when its memory is lost', async () => {
    const id = await makeSleeper()
    domain.engine.setMemory(false)
    expect(await remembers(id)).toBe(false)
    const { contentBase64 } = await readFile(domain.app, caller, id, '/data/kept')
    expect(Buffer.from(contentBase64, 'base64').toString()).toBe('kept')
  })

  it('does not get the same memory back a second time', async () => {
    const id = await makeSleeper()
    await run(id, 'true')
    domain.engine.endProcess(id, { code: 1 })
    await eventually(domain.app, caller, id, 'stopped')
    await startUnit(domain.app, caller, id)
    expect(await remembers(id)).toBe(false)
  })

  it('starts without its memory when it was stopped in its sleep', async () => {
    const id = await makeSleeper()
    await stopUnit(domain.app, caller, id)
    await startUnit(domain.app, caller, id)
    expect(await remembers(id)).toBe(false)
  })

  it('is started again when it is not ready soon after it wakes with its memory', async () => {
    let isStuck = false
    domain.engine.onExec(({ id, argv: [program] }) => {
      if (program !== 'probe') return null
      return { exitCode: isStuck && machineOf(id)?.generation === 2 ? 1 : 0 }
    })
    const id = await makeSleeper({ healthcheck: { cmd: ['probe'], intervalMs: 500, timeoutMs: 60_000 } })
    isStuck = true
    const ticking = setInterval(() => domain.clock.advance(SECOND), 5)
    expect(await remembers(id).finally(() => clearInterval(ticking))).toBe(false)
    expect(machineOf(id)?.generation).toBe(3)
    expect(await getUnit(domain.app, caller, id)).toMatchObject({ state: 'running', error: null })
  })

  it('is stopped by the reconciler when hibernation fails, and stays asleep', async () => {
    const { id } = await makeUnit(domain.app, caller)
    domain.engine.fail('suspend', 'internal')
    const asleep = sleepUnit(domain.app, caller, id, { sleep: '1h', stack: false, now: true })
    await asleep.catch(() => {})
    const unit = await findUnitOfAnyTeam(domain.app.db, { id, now: domain.clock.now() })
    if (unit?.frozen) await hibernateUnit(domain.app, unit).catch(() => {})
    await expect
      .poll(async () => {
        domain.clock.advance(11 * SECOND)
        return [machineOf(id)?.state, (await getUnit(domain.app, caller, id)).state]
      })
      .toEqual(['exited', 'sleeping'])
    expect((await run(id, 'echo', 'well')).stdout).toBe('well\n')
  })
})
