import { expect, onTestFinished, test } from 'vitest'
import type { ForkSpec, MachineRef, RunSpec } from '../../../src/engine/engine.ts'
import { kindOf, type Suite } from '../suite.ts'

/** What the next run of a machine is started with, unless a test says otherwise. */
const run: RunSpec = {
  hostname: 'unit',
  entrypoint: null,
  cmd: ['sleep', 'infinity'],
  env: {},
  files: [],
  searchDomain: 'stack.internal',
  egress: null,
}

/** What claims about forks are written with: forks in one line, destroyed at the end of their test. */
export function createForking(suite: Suite) {
  const specOf = (source: MachineRef): ForkSpec => {
    const { id } = suite.specOf({})
    onTestFinished(async () => await suite.engine().destroy(id))
    return { id, source, networkGroup: 1, run: null }
  }
  const fork = async (source: MachineRef): Promise<MachineRef> => {
    const [forked] = await suite.engine().fork([specOf(source)])
    expect(forked).toMatchObject({ status: { generation: 0, state: 'created', frozen: false, exit: null } })
    return { id: forked?.status.id ?? '', generation: 0 }
  }
  return {
    specOf,
    fork,
    running: async (source: MachineRef, changed: Partial<RunSpec> = {}): Promise<MachineRef> =>
      await suite.start({ ...(await fork(source)), generation: 1 }, changed),
  }
}

/** For every engine. */
export function forkClaims(suite: Suite): void {
  const engine = suite.engine
  const { specOf, fork, running } = createForking(suite)
  const said = async (ref: MachineRef, script: string) => (await suite.sh(ref, script)).stdout

  test('a fork has the files of its source at that moment, and both are independent afterwards', async () => {
    const source = await suite.running({}, { volume: { mount: '/data', gb: 1 } })
    await suite.sh(source, 'echo root > /root/file; echo data > /data/file')
    const copy = await fork(source)
    await suite.sh(source, 'echo later > /root/file; rm /data/file')
    await suite.start({ ...copy, generation: 1 })
    const copied = { ...copy, generation: 1 }
    expect(await said(copied, 'cat /root/file /data/file')).toBe('root\ndata\n')
    await suite.sh(copied, 'echo mine > /data/file')
    expect(await said(source, 'cat /root/file; cat /data/file || echo gone')).toBe('later\ngone\n')
    expect(await said(copied, 'cat /data/file')).toBe('mine\n')
  })

  test('a stopped machine can be forked without being started', async () => {
    const source = await suite.running()
    await suite.sh(source, 'echo kept > /root/file')
    await engine().stop(source, 0)
    const before = await suite.status(source.id)
    expect(await said(await running(source), 'cat /root/file')).toBe('kept\n')
    expect(await suite.status(source.id)).toEqual(before)
  })

  test('a machine that never ran can be forked', async () => {
    const { id } = await suite.create()
    expect(await said(await running({ id, generation: 0 }), 'echo here')).toBe('here\n')
    expect(await suite.status(id)).toMatchObject({ generation: 0, state: 'created' })
  })

  test('a frozen machine can be forked with all its files and stays frozen', async () => {
    const source = await suite.running({}, { volume: { mount: '/data', gb: 1 } })
    await suite.sh(source, 'echo root > /root/file; echo data > /data/file')
    await engine().freeze(source)
    expect(await said(await running(source), 'cat /root/file /data/file')).toBe('root\ndata\n')
    expect(await suite.status(source.id)).toMatchObject({ state: 'running', frozen: true })
    await engine().thaw(source)
    expect(await said(source, 'cat /root/file')).toBe('root\n')
  })

  test('a fork has its own address, host name and fork generation', async () => {
    const source = await suite.running({ hostname: 'first' })
    const child = await running(source, { hostname: 'second' })
    const grandchild = await running(child, { hostname: 'third' })
    const machines = [source, child, grandchild]
    const script = 'hostname; cat /run/berth/fork-generation'
    expect(await Promise.all(machines.map((machine) => said(machine, script)))).toEqual([
      'first\n0\n',
      'second\n1\n',
      'third\n2\n',
    ])
    const addresses = await Promise.all(machines.map(async ({ id }) => (await suite.status(id))?.address))
    expect(new Set(addresses).size).toBe(3)
  })

  test('the fork generation is kept across a restart', async () => {
    const copy = await running(await suite.running())
    await engine().stop(copy, 0)
    const again = await suite.start({ ...copy, generation: 2 })
    expect(await said(again, 'cat /run/berth/fork-generation')).toBe('1\n')
  })

  test('a repeated fork request returns the existing fork', async () => {
    const source = await suite.running()
    await suite.sh(source, 'echo first > /root/file')
    const spec = specOf(source)
    await engine().fork([spec])
    const ref = await suite.start({ id: spec.id, generation: 1 })
    await suite.sh(source, 'echo second > /root/file')
    expect(await engine().fork([spec])).toMatchObject([{ status: { id: spec.id, state: 'running' } }])
    expect(await said(ref, 'cat /root/file')).toBe('first\n')
  })

  test('forks requested together are all created or none', async () => {
    const sources = [await suite.running(), await suite.running()]
    const specs = sources.map(specOf)
    const unknown = specOf({ id: 'unit_not_here', generation: 1 })
    expect(await kindOf(engine().fork([...specs, unknown]))).toBe('unknown_machine')
    for (const { id } of [...specs, unknown]) expect(await suite.status(id)).toBeUndefined()
    expect(await engine().fork(specs)).toMatchObject(specs.map(({ id }) => ({ status: { id } })))
    for (const source of sources) expect(await said(source, 'echo on')).toBe('on\n')
  })

  test('ten forks of one machine can be created at once', async () => {
    const source = await suite.running()
    await suite.sh(source, 'echo shared > /root/file')
    const copies = await Promise.all(Array.from({ length: 10 }, async () => await fork(source)))
    expect(new Set(copies.map(({ id }) => id)).size).toBe(10)
    const started = copies.slice(0, 3).map(async (copy) => {
      const ref = await suite.start({ ...copy, generation: 1 })
      return await said(ref, 'cat /root/file')
    })
    expect(await Promise.all(started)).toEqual(['shared\n', 'shared\n', 'shared\n'])
    expect(await said(source, 'echo on')).toBe('on\n')
  })

  test('concurrent forks of the same machines in opposite order do not deadlock', async () => {
    const [one, other] = [await suite.running(), await suite.running()]
    const rounds = [1, 2, 3].flatMap(() => [
      engine().fork([one, other].map(specOf)),
      engine().fork([other, one].map(specOf)),
    ])
    for (const forked of await Promise.all(rounds)) expect(forked).toHaveLength(2)
  })

  test('a fork and its source can be destroyed in any order', async () => {
    const source = await suite.running({}, { volume: { mount: '/data', gb: 1 } })
    await suite.sh(source, 'echo kept > /data/file')
    const [first, second] = [await running(source), await running(source)]
    await engine().destroy(first.id)
    expect(await said(source, 'cat /data/file')).toBe('kept\n')
    await engine().destroy(source.id)
    expect(await said(second, 'cat /data/file')).toBe('kept\n')
    const third = await running(second)
    expect(await said(third, 'cat /data/file')).toBe('kept\n')
  })

  test('a fork has the memory of its source exactly if its start says resumed, and only once', async () => {
    const { classes } = await engine().capabilities()
    const { memory } = classes.find((each) => each.class === suite.options.isolation) ?? {}
    const source = await suite.running()
    await suite.sh(source, 'echo remembered > /dev/shm/mark')
    const spec = { ...specOf(source), run: { ...run, hostname: 'copy' } }
    const [forked] = await engine().fork([spec])
    expect(forked?.copied).toBe(memory?.available ? 'memory' : 'disk')
    for (const generation of [1, 2]) {
      const ref = { id: spec.id, generation }
      const { resumed } = await engine().start(ref, spec.run)
      expect([generation, resumed]).toEqual([generation, generation === 1 && memory?.available])
      expect(await said(ref, 'cat /dev/shm/mark || echo nothing')).toBe(
        resumed ? 'remembered\n' : 'nothing\n',
      )
      expect(await said(ref, 'hostname; cat /run/berth/fork-generation')).toBe('copy\n1\n')
      await engine().stop(ref, 0)
    }
    expect(await said(source, 'cat /dev/shm/mark')).toBe('remembered\n')
  })

  test('a fork with a different start specification does not get its source’s memory', async () => {
    const source = await suite.running()
    const spec = { ...specOf(source), run: { ...run, env: { SIBLING: 'another' } } }
    expect(await engine().fork([spec])).toMatchObject([{ copied: 'disk' }])
    expect(await engine().start({ id: spec.id, generation: 1 }, spec.run)).toMatchObject({ resumed: false })
  })
}
