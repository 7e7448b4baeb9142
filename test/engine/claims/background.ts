import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { limits } from '../../../src/contract/limits.ts'
import type { MachineRef } from '../../../src/engine/engine.ts'
import type { MachineProcess, ProcessRequest } from '../../../src/engine/process.ts'
import { eventually, kindOf, type Suite } from '../suite.ts'

export function createBackground(suite: Suite) {
  const requestOf = (argv: string[], given: Partial<ProcessRequest> = {}): ProcessRequest => ({
    id: `proc_${randomBytes(6).toString('hex')}`,
    argv,
    shown: argv.map((item) => item.slice(0, 100)),
    env: {},
    cwd: null,
    stdin: null,
    keepsAwake: false,
    ...given,
  })

  const background = {
    requestOf,
    start: async (ref: MachineRef, argv: string[], given: Partial<ProcessRequest> = {}) =>
      await suite.engine().startProcess(ref, requestOf(argv, given)),
    sh: async (ref: MachineRef, script: string, given: Partial<ProcessRequest> = {}) =>
      await background.start(ref, ['sh', '-c', script], given),
    status: async ({ id }: { id: string }, process: string): Promise<MachineProcess | undefined> =>
      (await suite.engine().processes(id)).find((one) => one.id === process),
    over: async (ref: { id: string }, process: string, withinMs?: number): Promise<MachineProcess> =>
      await eventually(async () => {
        const status = await background.status(ref, process)
        return status && status.state !== 'running' ? status : null
      }, withinMs),
    /** Reads all output page by page and checks that each byte comes once. */
    output: async ({ id }: { id: string }, process: string, after = 0) => {
      const said = { stdout: '', stderr: '', order: '' }
      for (;;) {
        const pieces = await suite.engine().processOutput(id, process, after, 64 * 1024)
        if (pieces.length === 0) return said
        for (const { stream, data, end } of pieces) {
          said[stream] += data.toString('latin1')
          said.order += data.toString('latin1')
          expect(end - data.length).toBeGreaterThanOrEqual(after)
          after = end
        }
      }
    },
    printed: async (ref: { id: string }, process: string, text: string) =>
      await eventually(async () =>
        (await background.output(ref, process)).order.includes(text) ? true : null,
      ),
  }
  return background
}

/** For every engine. */
export function backgroundClaims(suite: Suite): void {
  const machine = suite.shared()
  const background = createBackground(suite)

  test('a background process outlives its start call, and its exit code and output can be read', async () => {
    const started = await background.sh(machine(), 'echo out; echo err >&2; sleep 0.2; exit 3')
    expect(started).toMatchObject({ state: 'running', exitCode: null, endedAt: null })
    const over = await background.over(machine(), started.id)
    expect(over).toMatchObject({ state: 'exited', exitCode: 3, output: { from: 0, to: 8 } })
    expect(over.endedAt?.getTime()).toBeGreaterThanOrEqual(over.startedAt.getTime())
    expect(await background.output(machine(), started.id)).toMatchObject({ stdout: 'out\n', stderr: 'err\n' })
  })

  test('a background process is started once for any number of calls with its id', async () => {
    const request = background.requestOf(['sh', '-c', 'echo once >> /tmp/begun; echo said'])
    const calls = [1, 2, 3].map(() => suite.engine().startProcess(machine(), request))
    await Promise.all(calls)
    await background.over(machine(), request.id)
    await suite.engine().startProcess(machine(), request)
    expect((await background.output(machine(), request.id)).stdout).toBe('said\n')
    expect((await suite.sh(machine(), 'cat /tmp/begun')).stdout).toBe('once\n')
  })

  test('a background process has the environment and input it was given', async () => {
    const { id } = await background.sh(machine(), 'cat; printenv MINE; printenv PATH', {
      env: { MINE: 'given ✓' },
      stdin: Buffer.from('in\n'),
    })
    expect(await background.over(machine(), id)).toMatchObject({ exitCode: 0 })
    const [input, mine, path] = (await background.output(machine(), id)).stdout.split('\n')
    expect([input, mine, path !== '']).toEqual(['in', Buffer.from('given ✓').toString('latin1'), true])
  })

  test('a background process without input gets an end of file', async () => {
    const { id } = await background.start(machine(), ['cat'])
    expect(await background.over(machine(), id)).toMatchObject({ state: 'exited', exitCode: 0 })
  })

  test('a background process whose input is open gets what is written to it, and then its end', async () => {
    const { id, takesInput } = await background.start(machine(), ['cat'], {
      stdin: Buffer.from('first '),
      takesInput: true,
    })
    expect(takesInput).toBe(true)
    const write = async (text: string, end = false) =>
      await suite.engine().writeProcess(machine(), id, Buffer.from(text), end)
    expect(await Promise.all([write('second '), write('third ')])).toEqual([7, 6])
    expect(await write('last', true)).toBe(4)
    expect(await background.over(machine(), id)).toMatchObject({ exitCode: 0, takesInput: false })
    expect((await background.output(machine(), id)).stdout).toBe('first second third last')
    expect(await kindOf(write('late'))).toBe('process_ended')
    const closed = await background.start(machine(), ['sleep', '60'])
    const late = suite.engine().writeProcess(machine(), closed.id, Buffer.from('x'), false)
    expect(await kindOf(late)).toBe('input_ended')
    await suite.engine().forgetProcess(machine().id, closed.id)
  })

  test('a watcher is told of each background process that ends', async () => {
    const abort = new AbortController()
    const told: string[] = []
    const watching = suite.engine().watchProcesses(({ machine: of, process: { id, exitCode } }) => {
      if (of === machine().id) told.push(`${id} ${exitCode}`)
    }, abort.signal)
    const short = await background.sh(machine(), 'exit 3')
    const long = await background.start(machine(), ['sleep', '60'])
    await background.over(machine(), short.id)
    await suite.engine().forgetProcess(machine().id, long.id)
    await eventually(async () => (told.length === 2 ? true : null))
    expect(told).toEqual([`${short.id} 3`, `${long.id} 137`])
    abort.abort()
    await watching
  })

  test('until when a background process keeps its machine awake is stored', async () => {
    const { id } = await background.start(machine(), ['sleep', '60'])
    const until = new Date('2030-01-02T03:04:05.678Z')
    await suite.engine().keepProcessAwake(machine().id, id, until)
    expect((await background.status(machine(), id))?.awakeUntil).toEqual(until)
    await suite.engine().forgetProcess(machine().id, id)
    expect(await kindOf(suite.engine().keepProcessAwake(machine().id, id, until))).toBe('unknown_process')
  })

  test('an unknown command exits with 127 and an error message', async () => {
    const { id } = await background.start(machine(), ['no-such-command'])
    expect(await background.over(machine(), id)).toMatchObject({ state: 'exited', exitCode: 127 })
    expect((await background.output(machine(), id)).stderr).toContain('not found')
  })

  test('output can be read from any offset and any number of times', async () => {
    const { id } = await background.sh(machine(), 'echo first; echo second')
    await background.over(machine(), id)
    expect((await background.output(machine(), id, 6)).stdout).toBe('second\n')
    expect((await background.output(machine(), id, 8)).stdout).toBe('cond\n')
    expect(await suite.engine().processOutput(machine().id, id, 13, 100)).toEqual([])
    expect(await suite.engine().processOutput(machine().id, id, 9_999_999, 100)).toEqual([])
    const [piece] = await suite.engine().processOutput(machine().id, id, 0, 3)
    expect([piece?.data.toString(), piece?.end]).toEqual(['fir', 3])
  })

  test('a follower gets past output, new output and the end', async () => {
    const { id } = await background.sh(machine(), 'echo early; sleep 0.3; echo late')
    await background.printed(machine(), id, 'early')
    const never = new AbortController().signal
    let said = ''
    for await (const { data } of suite.engine().followProcess(machine().id, id, 2, never))
      said += data.toString()
    expect(said).toBe('rly\nlate\n')
    expect(await background.status(machine(), id)).toMatchObject({ state: 'exited', exitCode: 0 })
  })

  test('a follower that aborts does not block anything', async () => {
    const { id } = await background.sh(machine(), 'echo begun; sleep 60')
    const abort = new AbortController()
    const seen: string[] = []
    for await (const { data } of suite.engine().followProcess(machine().id, id, 0, abort.signal)) {
      seen.push(data.toString())
      abort.abort(new Error('the follower left'))
    }
    expect(seen).toEqual(['begun\n'])
    await suite.engine().forgetProcess(machine().id, id)
  })

  test('a signal ends a background process, and its number is in the exit code', async () => {
    for (const [signal, exitCode] of [
      ['TERM', 143],
      ['KILL', 137],
    ] as const) {
      const { id } = await background.start(machine(), ['sleep', '60'])
      await suite.engine().signalProcess(machine(), id, signal)
      expect(await background.over(machine(), id)).toMatchObject({ state: 'exited', exitCode })
      expect(await kindOf(suite.engine().signalProcess(machine(), id, signal))).toBe('process_ended')
    }
  })

  test('deleting a background process kills it and can be repeated', async () => {
    const { id } = await background.start(machine(), ['sleep', '60'])
    await suite.engine().forgetProcess(machine().id, id)
    expect(await background.status(machine(), id)).toBeUndefined()
    await suite.engine().forgetProcess(machine().id, id)
    const { id: of } = machine()
    expect(await kindOf(suite.engine().processOutput(of, id, 0, 100))).toBe('unknown_process')
    expect(await kindOf(suite.engine().signalProcess(machine(), id, 'TERM'))).toBe('unknown_process')
  })

  test('a stopped machine starts no background process but still lists past ones', async () => {
    const ref = await suite.running()
    const done = await background.sh(ref, 'echo done')
    await background.over(ref, done.id)
    const open = await background.sh(ref, 'echo begun; sleep 60')
    await background.printed(ref, open.id, 'begun')
    await suite.engine().stop(ref, 0)
    expect(await background.status(ref, done.id)).toMatchObject({ state: 'exited', exitCode: 0 })
    expect(await background.over(ref, open.id)).toMatchObject({ state: 'exited', exitCode: 137 })
    expect((await background.output(ref, open.id)).stdout).toBe('begun\n')
    expect(await kindOf(background.start(ref, ['true']))).toBe('not_running')
    expect(await kindOf(suite.engine().signalProcess(ref, open.id, 'TERM'))).toBe('not_running')
    await suite.engine().destroy(ref.id)
    expect(await kindOf(suite.engine().processes(ref.id))).toBe('unknown_machine')
  })

  test('a background process is frozen and thawed with its machine', async () => {
    const ref = await suite.running()
    const { id } = await background.sh(ref, 'echo begun; sleep 1; echo went on')
    await background.printed(ref, id, 'begun')
    await suite.engine().freeze(ref)
    expect(await background.status(ref, id)).toMatchObject({ state: 'running' })
    expect(await kindOf(background.start(ref, ['true']))).toBe('frozen')
    expect(await kindOf(suite.engine().signalProcess(ref, id, 'TERM'))).toBe('frozen')
    expect(await kindOf(suite.engine().forgetProcess(ref.id, id))).toBe('frozen')
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect((await background.output(ref, id)).stdout).toBe('begun\n')
    await suite.engine().thaw(ref)
    expect(await background.over(ref, id)).toMatchObject({ state: 'exited', exitCode: 0 })
    expect((await background.output(ref, id)).stdout).toBe('begun\nwent on\n')
  })

  test('a background process is lost in a suspended or restarted run and in a fork', async () => {
    const ref = await suite.running()
    const { id } = await background.sh(ref, 'echo begun; sleep 60')
    await background.printed(ref, id, 'begun')
    const copy = `${ref.id}copy`
    await suite.engine().fork([{ id: copy, source: ref, networkGroup: 1, run: null }])
    expect(await background.status({ id: copy }, id)).toMatchObject({
      state: 'lost',
      exitCode: null,
      shown: ['sh', '-c', 'echo begun; sleep 60'],
      output: { from: 0, to: 0 },
    })
    await suite.engine().destroy(copy)
    expect(await background.status(ref, id)).toMatchObject({ state: 'running' })

    const again = await suite.start({ id: ref.id, generation: 2 })
    expect(await background.over(ref, id)).toMatchObject({ state: 'lost', exitCode: null })
    expect((await background.output(ref, id)).stdout).toBe('begun\n')
    const other = await background.start(again, ['sleep', '60'])
    await suite.engine().suspend(again, 0)
    expect(await background.over(ref, other.id)).toMatchObject({ state: 'lost' })
  })

  test('a machine keeps a limited number of processes and drops the longest ended one first', async () => {
    const ref = await suite.running({}, { size: { cpus: 2, memoryMb: 512, pids: 400, diskGb: 1 } })
    const first = await background.start(ref, ['true'])
    await background.over(ref, first.id)
    const open = await Promise.all(
      Array.from({ length: limits.processes - 1 }, async () => await background.start(ref, ['sleep', '600'])),
    )
    const last = await background.start(ref, ['sleep', '600'])
    expect(await background.status(ref, first.id)).toBeUndefined()
    expect((await suite.engine().processes(ref.id)).map(({ id }) => id).toSorted()).toEqual(
      [...open, last].map(({ id }) => id).toSorted(),
    )
    expect(await kindOf(background.start(ref, ['true']))).toBe('process_limit')
    await suite.engine().forgetProcess(ref.id, last.id)
    await background.start(ref, ['true'])
  })
}
