// What happens to a unit after it was created: stop, start, exits and destroy (spec 3). Sleep has a file of its own.
// See reliability B3.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import type { Caller } from '../credentials/caller.ts'
import { destroyErroredUnits, destroyUnit } from './destroy.ts'
import { execInUnit } from './exec.ts'
import { recordExit, watchExits } from './lifecycle/exits.ts'
import { getUnit } from './get.ts'
import { startUnit } from './start.ts'
import { stopUnit } from './stop.ts'

let domain: TestDomain
let caller: Caller
beforeAll(async () => {
  domain = await createTestDomain()
  caller = await domain.makeCaller()
})
afterAll(async () => await domain.close())

const machineOf = (id: string) => domain.engine.machines().find((machine) => machine.id === id)
const callsOn = (id: string, operation: string) =>
  domain.engine.calls.filter((call) => call.id === id && call.operation === operation).length
const run = async (id: string, ...cmd: string[]) =>
  await execInUnit(domain.app, caller, id, { cmd, timeoutMs: 5_000 })

describe('a call to a unit that is being created', () => {
  it('waits for the unit and then acts', async () => {
    const release = domain.engine.hang('start')
    const unit = await makeUnit(domain.app, caller, {}, { wait: false })
    const result = run(unit.id, 'echo', 'ready')
    await new Promise((resolve) => setTimeout(resolve, 30))
    release()
    expect((await result).stdout).toBe('ready\n')
  })

  it('is refused after a timeout, and shows the state of the machine', async () => {
    const release = domain.engine.hang('start')
    const unit = await makeUnit(domain.app, caller, {}, { wait: false })
    const refused = expect(run(unit.id, 'true')).rejects.toMatchObject({
      status: 409,
      code: 'invalid_state',
      details: { machineState: 'creating', lastExit: null, providerSaid: null },
    })
    await new Promise((resolve) => setTimeout(resolve, 20))
    domain.clock.advance(46_000)
    await refused
    release()
    await eventually(domain.app, caller, unit.id, 'running')
  })
})

describe('stop and start', () => {
  it('every start writes the boot files and the environment again', async () => {
    const unit = await makeUnit(domain.app, caller, {
      files: { '/app/config': 'as declared' },
      env: { TOKEN: { secret: 'token', value: 'still known' } },
    })
    await run(unit.id, 'sh', '-c', 'echo changed > /app/config')
    expect((await run(unit.id, 'cat', '/app/config')).stdout).toBe('changed\n')
    await stopUnit(domain.app, caller, unit.id)
    await startUnit(domain.app, caller, unit.id)
    expect((await run(unit.id, 'cat', '/app/config')).stdout).toBe('as declared')
    expect((await run(unit.id, 'printenv', 'TOKEN')).stdout).toBe('still known\n')
  })

  it('stop keeps the unit, start runs it again, and both can be repeated', async () => {
    const unit = await makeUnit(domain.app, caller)
    const stopped = await stopUnit(domain.app, caller, unit.id)
    expect(stopped).toMatchObject({ state: 'stopped', stoppedReason: 'user', sleepsAt: null, lastExit: null })
    expect(machineOf(unit.id)?.state).toBe('exited')
    expect((await stopUnit(domain.app, caller, unit.id)).state).toBe('stopped')

    const started = await startUnit(domain.app, caller, unit.id)
    expect(started).toMatchObject({ state: 'running', stoppedReason: null })
    expect(machineOf(unit.id)).toMatchObject({ state: 'running', generation: 2 })
    expect((await startUnit(domain.app, caller, unit.id)).state).toBe('running')
    expect(callsOn(unit.id, 'start')).toBe(2)
  })

  it('the error of a start whose healthcheck does not pass has what this run printed, and nothing of an earlier one', async () => {
    let isWell = true
    domain.engine.onExec(({ argv }) => (argv[0] === 'well-once' ? { exitCode: isWell ? 0 : 1 } : null))
    const unit = await makeUnit(domain.app, caller, {
      cmd: ['sh', '-c', 'echo loading; sleep infinity'],
      healthcheck: { cmd: ['well-once'], intervalMs: 500, timeoutMs: 1000 },
    })
    domain.engine.print(unit.id, 'serving since monday')
    await stopUnit(domain.app, caller, unit.id)
    isWell = false
    const time = setInterval(() => domain.clock.advance(50), 5)
    const starting = startUnit(domain.app, caller, unit.id).finally(() => clearInterval(time))
    await expect(starting).rejects.toMatchObject({
      message: expect.stringMatching(/ The unit printed last: "loading"\.$/),
    })
  })

  it('concurrent starts or stops of a unit all get the same answer', async () => {
    const unit = await makeUnit(domain.app, caller)
    const states = async (act: typeof startUnit) => {
      const answers = await Promise.all(Array.from({ length: 5 }, () => act(domain.app, caller, unit.id)))
      return new Set(answers.map(({ state }) => state))
    }
    expect(await states(stopUnit)).toEqual(new Set(['stopped']))
    expect(await states(startUnit)).toEqual(new Set(['running']))
    expect(callsOn(unit.id, 'start')).toBe(2)
  })

  it('a run whose machine is lost before it is ready is not billed', async () => {
    const unit = await makeUnit(domain.app, caller, { healthcheck: { cmd: ['true'] } })
    await stopUnit(domain.app, caller, unit.id)
    domain.engine.hang('exec')
    const starting = startUnit(domain.app, caller, unit.id)
    await expect.poll(() => domain.engine.calls.at(-1)?.operation).toBe('exec')
    domain.clock.advance(40_000)
    domain.engine.loseMachine(unit.id)
    domain.engine.crash()
    const { startedAt } = await starting
    expect(domain.clock.now().getTime() - Date.parse(startedAt ?? '')).toBeLessThan(30_000)
  })

  it('the cost of a unit grows while it runs and stays the same while it is stopped', async () => {
    const unit = await makeUnit(domain.app, caller, { size: 'medium', sleep: 'never' })
    domain.clock.advance(3_600_000)
    const stopped = await stopUnit(domain.app, caller, unit.id)
    expect(stopped.costCentsSoFar).toBeGreaterThanOrEqual(1.5)
    expect(stopped.costCentsSoFar).toBeLessThan(1.51)
    domain.clock.advance(3_600_000)
    expect((await getUnit(domain.app, caller, unit.id)).costCentsSoFar).toBe(stopped.costCentsSoFar)
  })

  it('a command in a stopped unit is refused with the last exit', async () => {
    const unit = await makeUnit(domain.app, caller)
    await stopUnit(domain.app, caller, unit.id)
    await expect(run(unit.id, 'true')).rejects.toMatchObject({
      status: 409,
      code: 'invalid_state',
      details: { lastExit: null },
    })
  })

  it('a start that fails leaves the unit stopped with its error, and its machine stopped', async () => {
    const unit = await makeUnit(domain.app, caller)
    await stopUnit(domain.app, caller, unit.id)
    domain.engine.fail('start', 'host_full', { when: 'after' })
    await expect(startUnit(domain.app, caller, unit.id)).rejects.toMatchObject({ status: 502 })
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'stopped',
      stoppedReason: 'user',
      error: expect.stringContaining('host_full'),
      destroysAt: null,
    })
    expect(machineOf(unit.id)?.state).toBe('exited')
    expect(await startUnit(domain.app, caller, unit.id)).toMatchObject({ state: 'running', error: null })
  })

  it('a start beyond the concurrency limit is refused', async () => {
    const one = await domain.makeCaller({ maxConcurrentUnits: 1 })
    const first = await makeUnit(domain.app, one)
    await stopUnit(domain.app, one, first.id)
    await makeUnit(domain.app, one, { name: 'second' })
    await expect(startUnit(domain.app, one, first.id)).rejects.toMatchObject({
      status: 402,
      code: 'quota_exceeded',
    })
    expect((await getUnit(domain.app, one, first.id)).state).toBe('stopped')
  })
})

describe('the exit of a unit', () => {
  it('is shown with its code and cause', async () => {
    const stop = new AbortController()
    const watching = watchExits(domain.app, stop.signal)
    const unit = await makeUnit(domain.app, caller)
    domain.engine.endProcess(unit.id, { code: 137, oomKilled: true })
    const stopped = await eventually(domain.app, caller, unit.id, 'stopped')
    expect(stopped).toMatchObject({ stoppedReason: 'exited', lastExit: { code: 137, oomKilled: true } })
    await expect(run(unit.id, 'true')).rejects.toMatchObject({
      status: 409,
      details: { lastExit: { code: 137 } },
    })
    expect((await startUnit(domain.app, caller, unit.id)).state).toBe('running')
    stop.abort()
    await watching
  })

  it('is noticed after a restart of the engine', async () => {
    const stop = new AbortController()
    const watching = watchExits(domain.app, stop.signal)
    const unit = await makeUnit(domain.app, caller)
    domain.engine.crash()
    domain.engine.endProcess(unit.id, { code: 1 })
    domain.clock.advance(1_000)
    await eventually(domain.app, caller, unit.id, 'stopped')
    stop.abort()
    await watching
  })

  it('is ignored when it belongs to an earlier run', async () => {
    const unit = await makeUnit(domain.app, caller)
    await stopUnit(domain.app, caller, unit.id)
    await startUnit(domain.app, caller, unit.id)
    const exit = { code: 1, oomKilled: false, byHost: false, at: domain.clock.now() }
    await recordExit(domain.app, {
      id: unit.id,
      generation: 1,
      state: 'exited',
      frozen: false,
      exit,
      address: '',
    })
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({ state: 'running', lastExit: null })
  })

  it('by loss of its machine is noticed by the next command, which wakes the unit', async () => {
    const unit = await makeUnit(domain.app, caller)
    domain.engine.loseMachine(unit.id)
    expect((await run(unit.id, 'echo', 'again')).stdout).toBe('again\n')
    expect(machineOf(unit.id)).toMatchObject({ state: 'running', generation: 2 })
  })

  it('that the host caused puts the unit to sleep, and the next use wakes it', async () => {
    const stop = new AbortController()
    const watching = watchExits(domain.app, stop.signal)
    const unit = await makeUnit(domain.app, caller)
    domain.engine.killMachine(unit.id)
    const asleep = await eventually(domain.app, caller, unit.id, 'sleeping')
    expect(asleep).toMatchObject({ stoppedReason: 'provider', lastExit: null, sleepsAt: null })
    expect((await run(unit.id, 'echo', 'again')).stdout).toBe('again\n')
    expect(machineOf(unit.id)).toMatchObject({ state: 'running', generation: 2 })
    stop.abort()
    await watching
  })

  it('that the host caused during a create makes the create fail', async () => {
    domain.engine.onExec(({ id, argv }) => {
      if (argv[0] !== 'dies-meanwhile') return null
      domain.engine.killMachine(id)
      return { exitCode: 1 }
    })
    const healthcheck = { cmd: ['dies-meanwhile'], intervalMs: 500 }
    const made = makeUnit(domain.app, caller, { name: 'short', healthcheck }).catch((error: unknown) => error)
    const time = setInterval(() => domain.clock.advance(50), 5)
    expect(await made).toMatchObject({ status: 502, message: expect.stringContaining('before it was ready') })
    clearInterval(time)
  })

  it('is noticed by the command that meets it', async () => {
    const unit = await makeUnit(domain.app, caller)
    domain.engine.endProcess(unit.id, { code: 9 })
    await expect(run(unit.id, 'true')).rejects.toMatchObject({
      status: 409,
      details: { lastExit: { code: 9 } },
    })
    expect((await getUnit(domain.app, caller, unit.id)).state).toBe('stopped')
  })
})

describe('destroy', () => {
  it('is final: the unit can be read, its machine is removed, and other calls are refused', async () => {
    const unit = await makeUnit(domain.app, caller)
    expect(await destroyUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'destroyed',
      sleepsAt: null,
    })
    expect(machineOf(unit.id)).toBeUndefined()
    expect((await getUnit(domain.app, caller, unit.id)).state).toBe('destroyed')
    const operations = [
      () => run(unit.id, 'true'),
      () => startUnit(domain.app, caller, unit.id),
      () => stopUnit(domain.app, caller, unit.id),
    ]
    for (const operation of operations) {
      await expect(operation()).rejects.toMatchObject({ status: 409, code: 'invalid_state' })
    }
    expect((await destroyUnit(domain.app, caller, unit.id)).state).toBe('destroyed')
  })

  it.each(['pull', 'create', 'start'] as const)(
    'works while a create hangs in %s, and leaves nothing of it',
    async (operation) => {
      const release = domain.engine.hang(operation, { when: 'after' })
      const creating = makeUnit(domain.app, caller).catch((error: unknown) => error)
      let id: string | undefined
      while (id === undefined) {
        const row = await domain.app.db
          .selectFrom('units')
          .select('id')
          .where('state', '=', 'creating')
          .where('team_id', '=', caller.teamId)
          .executeTakeFirst()
        id = row?.id
      }
      while (domain.engine.calls.at(-1)?.operation !== operation)
        await new Promise((resolve) => setTimeout(resolve, 1))
      expect((await destroyUnit(domain.app, caller, id)).state).toBe('destroyed')
      release()
      await creating
      expect(machineOf(id)).toBeUndefined()
      expect((await getUnit(domain.app, caller, id)).state).toBe('destroyed')
    },
  )

  it('frees the address before the machine is removed', async () => {
    const unit = await makeUnit(domain.app, caller)
    const addressOf = async () =>
      await domain.app.db
        .selectFrom('units')
        .select(['address', 'state'])
        .where('id', '=', unit.id)
        .executeTakeFirst()
    expect((await addressOf())?.address).toBe(machineOf(unit.id)?.address)
    const release = domain.engine.hang('destroy')
    const destroying = destroyUnit(domain.app, caller, unit.id)
    await eventually(domain.app, caller, unit.id, 'destroying')
    expect(await addressOf()).toEqual({ address: null, state: 'destroying' })
    release()
    await destroying
  })

  it('retries while a process is slow to end, and answers once the unit is destroyed', async () => {
    const unit = await makeUnit(domain.app, caller)
    domain.engine.fail('destroy', 'timeout', { times: 3 })
    expect((await destroyUnit(domain.app, caller, unit.id)).state).toBe('destroyed')
    expect(machineOf(unit.id)).toBeUndefined()
  })

  it('works while a stop hangs', async () => {
    const unit = await makeUnit(domain.app, caller)
    const release = domain.engine.hang('stop')
    const stopping = stopUnit(domain.app, caller, unit.id).catch((error: unknown) => error)
    await eventually(domain.app, caller, unit.id, 'stopping')
    expect((await destroyUnit(domain.app, caller, unit.id)).state).toBe('destroyed')
    release()
    await stopping
    expect((await getUnit(domain.app, caller, unit.id)).state).toBe('destroyed')
  })

  it('removes a unit in error after an hour, not before', async () => {
    domain.engine.fail('start', 'start_failed')
    const error: unknown = await makeUnit(domain.app, caller).catch((thrown: unknown) => thrown)
    const { details } = error as { details: { unitId: string } }
    domain.clock.advance(3_590_000)
    await destroyErroredUnits(domain.app)
    expect((await getUnit(domain.app, caller, details.unitId)).state).toBe('error')
    domain.clock.advance(11_000)
    await destroyErroredUnits(domain.app)
    expect(await getUnit(domain.app, caller, details.unitId)).toMatchObject({
      state: 'destroyed',
      destroysAt: null,
    })
  })
})

describe('a unit of another team', () => {
  it('is refused with 403, an unknown one with 404, and neither is changed', async () => {
    const unit = await makeUnit(domain.app, caller)
    const stranger = await domain.makeCaller()
    const attempts = [
      () => getUnit(domain.app, stranger, unit.id),
      () => execInUnit(domain.app, stranger, unit.id, { cmd: ['true'], timeoutMs: 1000 }),
      () => stopUnit(domain.app, stranger, unit.id),
      () => destroyUnit(domain.app, stranger, unit.id),
    ]
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ status: 403 })
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'running',
      lastUsedAt: unit.lastUsedAt,
    })
    await expect(getUnit(domain.app, caller, `unit_${'0'.repeat(32)}`)).rejects.toMatchObject({ status: 404 })
    await expect(getUnit(domain.app, caller, 'unit_\0')).rejects.toMatchObject({ status: 404 })
  })
})
