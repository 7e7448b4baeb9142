// The server dies at any step and restarts: every unit ends in a stable state, and nothing is left on the host
// (reliability F30).

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import type { Unit } from '../../contract/unit.ts'
import type { Caller } from '../credentials/caller.ts'
import { destroyUnit } from './destroy.ts'
import { execInUnit } from './exec.ts'
import { getUnit } from './get.ts'
import { listUnits } from './list.ts'
import { reconcileMachines, recover } from './reconcile.ts'
import { sleepUnit } from './sleep.ts'
import { startUnit } from './start.ts'
import { stopUnit } from './stop.ts'

let domain: TestDomain
let caller: Caller
beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
})
afterEach(async () => {
  await domain.app.db.deleteFrom('units').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

const machineOf = (id: string) => domain.engine.machines().find((machine) => machine.id === id)

async function onlyUnit(): Promise<Unit> {
  const { units } = await listUnits(domain.app, caller, { all: true, limit: 10 })
  const [unit] = units
  if (!unit || units.length > 1) throw new Error(`expected one unit, found ${units.length}`)
  return unit
}

/** Waits until the engine was called, with or without an answer. */
async function called(operation: string): Promise<void> {
  while (domain.engine.calls.at(-1)?.operation !== operation) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** The work of the old process hangs for ever, like that of a dead one, and a new process takes over. */
async function restart(): Promise<void> {
  await recover(domain.restarted())
}

describe('a unit whose server crashes', () => {
  const moments = ['pull', 'create', 'start'].flatMap((operation) =>
    (['before', 'after'] as const).map((when) => ({ operation, when })),
  ) as { operation: 'pull' | 'create' | 'start'; when: 'before' | 'after' }[]

  it.each(moments)(
    '$when $operation of a create is running after the restart',
    async ({ operation, when }) => {
      domain.engine.hang(operation, { when })
      void makeUnit(domain.app, caller).catch(() => {})
      await called(operation)
      await restart()
      const unit = await eventually(domain.app, caller, (await onlyUnit()).id, 'running')
      expect(machineOf(unit.id)).toMatchObject({ state: 'running', generation: 1 })
      expect(domain.engine.machines()).toHaveLength(1)
    },
  )

  it.each(moments)(
    '$when $operation of a create that then fails is in error, and leaves no machine',
    async ({ operation, when }) => {
      domain.engine.hang(operation, { when })
      void makeUnit(domain.app, caller).catch(() => {})
      await called(operation)
      domain.engine.fail('start', 'internal')
      await restart()
      await eventually(domain.app, caller, (await onlyUnit()).id, 'error')
      while (domain.engine.machines().length > 0) await new Promise((resolve) => setTimeout(resolve, 1))
    },
  )

  it.each(['before', 'after'] as const)(
    '%s the engine stops its machine is stopped after the restart',
    async (when) => {
      const unit = await makeUnit(domain.app, caller)
      domain.engine.hang('stop', { when })
      void stopUnit(domain.app, caller, unit.id).catch(() => {})
      await called('stop')
      await restart()
      const stopped = await eventually(domain.app, caller, unit.id, 'stopped')
      expect(stopped).toMatchObject({ stoppedReason: 'user', lastExit: null })
      expect(machineOf(unit.id)?.state).toBe('exited')
    },
  )

  it.each(['before', 'after'] as const)(
    '%s the engine starts its machine is running after the restart',
    async (when) => {
      const unit = await makeUnit(domain.app, caller)
      await stopUnit(domain.app, caller, unit.id)
      domain.engine.hang('start', { when })
      void startUnit(domain.app, caller, unit.id).catch(() => {})
      await called('start')
      await restart()
      await eventually(domain.app, caller, unit.id, 'running')
      expect(machineOf(unit.id)).toMatchObject({ state: 'running', generation: 2 })
    },
  )

  it.each(['before', 'after'] as const)(
    '%s the engine destroys its machine is destroyed after the restart',
    async (when) => {
      const unit = await makeUnit(domain.app, caller)
      domain.engine.hang('destroy', { when })
      void destroyUnit(domain.app, caller, unit.id).catch(() => {})
      await called('destroy')
      await restart()
      await eventually(domain.app, caller, unit.id, 'destroyed')
      expect(domain.engine.machines()).toEqual([])
    },
  )
})

describe('recover', () => {
  it('keeps every unit, and puts aside machines of unknown units', async () => {
    const unit = await makeUnit(domain.app, caller)
    const image = await domain.engine.pull('berth.local/debian:12')
    await domain.engine.create({
      id: 'unit_orphan',
      imageDigest: image.digest,
      isolation: 'runc',
      size: { cpus: 1, memoryMb: 64, pids: 64, diskGb: 1 },
      volume: null,
      networkGroup: 1,
    })
    await restart()
    expect(domain.engine.machines().map((machine) => machine.id)).toEqual([unit.id])
    expect((await getUnit(domain.app, caller, unit.id)).state).toBe('running')
    await domain.engine.recover([unit.id, 'unit_orphan'])
    expect(machineOf('unit_orphan')).toBeDefined()
    // A machine that cannot be put aside is not removed, and the next recovery tries again.
    domain.engine.fail('putAside', 'internal')
    await restart()
    expect(domain.engine.machines().map((machine) => machine.id)).toEqual([unit.id])
    await domain.engine.recover([unit.id, 'unit_orphan'])
    expect(machineOf('unit_orphan')).toBeDefined()
  })

  it('finds an exit that happened while the server was down', async () => {
    const unit = await makeUnit(domain.app, caller)
    domain.engine.endProcess(unit.id, { code: 5 })
    await restart()
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'stopped',
      stoppedReason: 'exited',
      lastExit: { code: 5 },
    })
  })

  it('puts a unit whose machine the host lost to sleep, and its next use wakes it', async () => {
    const unit = await makeUnit(domain.app, caller)
    domain.engine.loseMachine(unit.id)
    await restart()
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'sleeping',
      stoppedReason: 'provider',
      lastExit: null,
    })
    await execInUnit(domain.app, caller, unit.id, { cmd: ['true'], timeoutMs: 1000 })
    expect((await getUnit(domain.app, caller, unit.id)).state).toBe('running')
  })
})

describe('reconcileMachines', () => {
  it('destroys the machine of a failed create whose undo failed', async () => {
    domain.engine.fail('start', 'internal')
    domain.engine.fail('destroy', 'internal')
    await expect(makeUnit(domain.app, caller)).rejects.toMatchObject({ status: 502 })
    expect(domain.engine.machines()).toHaveLength(1)
    await reconcileMachines(domain.app)
    expect(domain.engine.machines()).toEqual([])
    expect((await onlyUnit()).state).toBe('error')
  })

  it('stops a machine whose unit is stopped', async () => {
    const unit = await makeUnit(domain.app, caller)
    await stopUnit(domain.app, caller, unit.id)
    domain.engine.fail('start', 'timeout', { when: 'after' })
    domain.engine.fail('stop', 'internal')
    await expect(startUnit(domain.app, caller, unit.id)).rejects.toMatchObject({ status: 502 })
    expect(machineOf(unit.id)?.state).toBe('running')
    domain.clock.advance(11_000)
    await reconcileMachines(domain.app)
    expect(machineOf(unit.id)?.state).toBe('exited')
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'stopped',
      stoppedReason: 'user',
    })
  })

  it('stops the earlier run when a wake could neither thaw it nor start another', async () => {
    const unit = await makeUnit(domain.app, caller)
    await sleepUnit(domain.app, caller, unit.id, { sleep: '1h', stack: false, now: true })
    domain.engine.fail('thaw', 'timeout', { when: 'after' })
    domain.engine.fail('start', 'timeout')
    await expect(startUnit(domain.app, caller, unit.id)).rejects.toMatchObject({ status: 502 })
    expect(machineOf(unit.id)).toMatchObject({ state: 'running', frozen: false, generation: 1 })
    domain.clock.advance(11_000)
    await reconcileMachines(domain.app)
    expect(machineOf(unit.id)?.state).toBe('exited')
    expect((await getUnit(domain.app, caller, unit.id)).state).toBe('sleeping')
  })

  it('puts a unit whose machine is missing to sleep', async () => {
    const unit = await makeUnit(domain.app, caller)
    await domain.engine.destroy(unit.id)
    domain.clock.advance(11_000)
    await reconcileMachines(domain.app)
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'sleeping',
      stoppedReason: 'provider',
    })
  })

  it('leaves a unit alone that is being created', async () => {
    const release = domain.engine.hang('start')
    const creating = makeUnit(domain.app, caller)
    await called('start')
    domain.clock.advance(60_000)
    await reconcileMachines(domain.app)
    release()
    expect((await creating).state).toBe('running')
  })
})
