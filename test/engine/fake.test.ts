// The fake engine keeps the same contract as the real one, so that tests can rely on it. The second part tests what a
// test can make it do.

import { describe, expect, test } from 'vitest'
import { createFakeEngine } from '../support/fake-engine/fake-engine.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { describeEngineContract } from './contract.ts'
import { fakeOptions, pullConfigured } from './fake-options.ts'
import { kindOf } from './suite.ts'

describeEngineContract(
  'the engine in memory',
  async () => {
    const engine = createFakeEngine({ clock: systemClock })
    return { engine, configuredImage: await pullConfigured(engine), close: async () => {} }
  },
  fakeOptions,
)

describe('the fake engine', () => {
  const size = { cpus: 1, memoryMb: 64, pids: 8, diskGb: 1 }
  const run = {
    hostname: 'a',
    entrypoint: null,
    cmd: null,
    env: { TOKEN: 'secret' },
    files: [],
    searchDomain: 'b',
    egress: null,
  }

  async function withMachine() {
    const fake = createFakeEngine({ clock: systemClock })
    const { digest } = await fake.pull('docker.io/library/debian:12')
    const create = async () =>
      await fake.create({
        id: 'unit_1',
        imageDigest: digest,
        isolation: 'runc',
        size,
        volume: null,
        networkGroup: 1,
      })
    await create()
    const ref = { id: 'unit_1', generation: 1 }
    return { fake, ref, create, start: async () => await fake.start(ref, run) }
  }

  test('fails an operation as often as requested, before or after its effect', async () => {
    const { fake, start } = await withMachine()
    fake.fail('start', 'host_full', { times: 2 })
    expect(await kindOf(start())).toBe('host_full')
    expect(await kindOf(start())).toBe('host_full')
    expect(fake.machines()).toMatchObject([{ state: 'created' }])
    fake.fail('start', new Error('the answer was lost'), { when: 'after' })
    await expect(start()).rejects.toThrow('the answer was lost')
    expect(fake.machines()).toMatchObject([{ state: 'running' }])
    await start()
  })

  test('rejects pending calls in a simulated crash and keeps its machines', async () => {
    const { fake, ref, start } = await withMachine()
    await start()
    fake.hang('list')
    const listing = kindOf(fake.list())
    const command = kindOf(
      fake.exec(ref, { argv: ['sleep', '60'], stdin: null, timeoutMs: 60_000 }, () => {}),
    )
    await new Promise(setImmediate)
    fake.crash()
    expect(await Promise.all([listing, command])).toEqual(['engine_away', 'engine_away'])
    expect(await fake.list()).toMatchObject([{ state: 'running' }])
  })

  test('continues a hanging call when the test releases it', async () => {
    const { fake } = await withMachine()
    const letGo = fake.hang('list')
    const listing = fake.list()
    letGo()
    expect(await listing).toHaveLength(1)
  })

  test('ends a process and loses a machine on request', async () => {
    const { fake, ref, start } = await withMachine()
    await start()
    fake.endProcess(ref.id, { code: 137, oomKilled: true })
    expect(fake.machines()).toMatchObject([{ state: 'exited', exit: { code: 137, oomKilled: true } }])
    await fake.start({ ...ref, generation: 2 }, run)
    fake.loseMachine(ref.id)
    expect(fake.machines()).toMatchObject([{ generation: 2, state: 'lost', exit: null }])
    expect(await kindOf(fake.start({ ...ref, generation: 2 }, run))).toBe('run_lost')
    await fake.start({ ...ref, generation: 3 }, run)
    expect(fake.machines()).toMatchObject([{ generation: 3, state: 'running' }])
  })

  test('keeps the memory of a suspended machine for one start, or loses it on request', async () => {
    const { fake, ref, start } = await withMachine()
    const shell = async (generation: number, script: string) => {
      const lines: string[] = []
      const request = { argv: ['sh', '-c', script], stdin: null, timeoutMs: 1000 }
      await fake.exec({ ...ref, generation }, request, ({ data }) => void lines.push(data.toString()))
      return lines.join('')
    }
    await start()
    await shell(1, 'echo kept > /dev/shm/mark')
    expect(await fake.suspend(ref, 0)).toBe(true)
    expect(fake.machines()).toMatchObject([{ state: 'exited', exit: { code: 137 } }])
    expect(await fake.suspend(ref, 0)).toBe(true)
    expect(await fake.start({ ...ref, generation: 2 }, run)).toMatchObject({ resumed: true })
    expect(await fake.start({ ...ref, generation: 2 }, run)).toMatchObject({ resumed: true })
    expect(await shell(2, 'cat /dev/shm/mark')).toBe('kept\n')
    await fake.stop({ ...ref, generation: 2 }, 0)
    expect(await fake.start({ ...ref, generation: 3 }, run)).toMatchObject({ resumed: false })
    expect(await shell(3, 'test -f /dev/shm/mark || echo gone')).toBe('gone\n')
    expect(await fake.suspend({ ...ref, generation: 3 }, 0)).toBe(true)
    fake.setMemory(false)
    expect(await fake.start({ ...ref, generation: 4 }, run)).toMatchObject({ resumed: false })
    expect(await fake.suspend({ ...ref, generation: 4 }, 0)).toBe(false)
  })

  test('lets a test define the result of commands', async () => {
    const { fake, ref, start } = await withMachine()
    await start()
    fake.onExec(({ argv }) => (argv[0] === 'pg_isready' ? { exitCode: 2, stdout: 'no response' } : null))
    const output: string[] = []
    const exec = async (argv: string[]) =>
      await fake.exec(
        ref,
        { argv, stdin: null, timeoutMs: 1000 },
        ({ data }) => void output.push(data.toString()),
      )
    expect(await exec(['pg_isready'])).toEqual({ exitCode: 2, timedOut: false })
    expect(await exec(['echo', 'hi'])).toEqual({ exitCode: 0, timedOut: false })
    expect(output).toEqual(['no response', 'hi\n'])
  })

  test('records operations and machine ids, but no secrets', async () => {
    const { fake, start } = await withMachine()
    await start()
    expect(fake.calls.at(-1)).toEqual({ operation: 'start', id: 'unit_1', generation: 1 })
    expect(JSON.stringify(fake.calls)).not.toContain('secret')
  })
})
