import { expect, test } from 'vitest'
import { kindOf, type Suite } from '../suite.ts'

export function lifecycleClaims(suite: Suite): void {
  const disk = '/root/kept'
  const volume = { mount: '/data', gb: 1 }

  test('a machine is created, started, runs a command and is destroyed', async () => {
    const spec = await suite.create()
    expect(await suite.status(spec.id)).toMatchObject({ generation: 0, state: 'created', exit: null })
    const ref = await suite.start({ id: spec.id, generation: 1 })
    expect(await suite.status(spec.id)).toMatchObject({ generation: 1, state: 'running', exit: null })
    expect(await suite.sh(ref, 'echo hello')).toMatchObject({ exitCode: 0, stdout: 'hello\n' })
    await suite.engine().destroy(spec.id)
    expect(await suite.status(spec.id)).toBeUndefined()
    expect(await kindOf(suite.sh(ref, 'true'))).toBe('unknown_machine')
  })

  test('the disk, volume and address survive a stop and start', async () => {
    const ref = await suite.running({}, { volume })
    const before = await suite.status(ref.id)
    await suite.sh(ref, `echo disk > ${disk}; echo volume > /data/kept`)
    await suite.engine().stop(ref, 2000)
    expect(await suite.status(ref.id)).toMatchObject({ generation: 1, state: 'exited' })
    const again = await suite.start({ id: ref.id, generation: 2 })
    expect(await suite.sh(again, `cat ${disk} /data/kept`)).toMatchObject({ stdout: 'disk\nvolume\n' })
    expect((await suite.status(ref.id))?.address).toBe(before?.address)
  })

  test('each machine has its own address', async () => {
    const [one, other] = [await suite.create(), await suite.create()]
    const addresses = [(await suite.status(one.id))?.address, (await suite.status(other.id))?.address]
    expect(new Set(addresses).size).toBe(2)
    expect(addresses).not.toContain(undefined)
  })

  test('every completed operation can be repeated', async () => {
    const engine = suite.engine()
    const spec = await suite.create()
    expect(await engine.create(spec)).toEqual(await suite.status(spec.id))
    const ref = await suite.start({ id: spec.id, generation: 1 })
    await suite.sh(ref, `echo kept > ${disk}`)
    await suite.start(ref)
    expect(await suite.sh(ref, `cat ${disk}`)).toMatchObject({ stdout: 'kept\n' })
    await engine.stop(ref, 2000)
    await engine.stop(ref, 2000)
    await suite.start(ref)
    expect(await suite.status(spec.id), 'a run that is over is not run again').toMatchObject({
      state: 'exited',
    })
    await engine.destroy(spec.id)
    await engine.destroy(spec.id)
  })

  test('destroy works in every state and for an unknown machine', async () => {
    const created = await suite.create()
    const running = await suite.running()
    const stopped = await suite.running()
    await suite.engine().stop(stopped, 0)
    for (const { id } of [created, running, stopped, { id: 'unit_nobody' }]) await suite.engine().destroy(id)
    const left = (await suite.engine().list()).map((machine) => machine.id)
    for (const { id } of [created, running, stopped]) expect(left).not.toContain(id)
  })

  test('a call with an older generation has no effect', async () => {
    const ref = await suite.running()
    await suite.engine().stop(ref, 0)
    const newer = await suite.start({ id: ref.id, generation: 5 })
    await suite.engine().stop(ref, 0)
    await suite.engine().stop({ id: ref.id, generation: 4 }, 0)
    await suite.start({ id: ref.id, generation: 3 }, { cmd: ['sh', '-c', 'exit 9'] })
    expect(await suite.status(ref.id)).toMatchObject({ generation: 5, state: 'running' })
    expect(await kindOf(suite.sh(ref, 'true'))).toBe('not_running')
    expect(await kindOf(suite.engine().writeFile(ref, '/tmp/x', Buffer.from('x')))).toBe('not_running')
    expect(await suite.sh(newer, 'test -f /tmp/x')).toMatchObject({ exitCode: 1 })
  })

  test('calls for a stopped or unknown machine fail with not_running or unknown_machine', async () => {
    const spec = await suite.create()
    const ref = { id: spec.id, generation: 1 }
    expect(await kindOf(suite.sh(ref, 'true'))).toBe('not_running')
    expect(await kindOf(suite.engine().readFile(ref, '/etc/hostname', 100))).toBe('not_running')
    const nobody = { id: 'unit_nobody', generation: 1 }
    expect(await kindOf(suite.sh(nobody, 'true'))).toBe('unknown_machine')
    expect(await kindOf(suite.start(nobody))).toBe('unknown_machine')
    expect(await kindOf(suite.engine().logs(nobody.id, { after: null, since: null, limit: 1 }))).toBe(
      'unknown_machine',
    )
  })

  test('a command that is not in the image fails the start, and the next start succeeds', async () => {
    const spec = await suite.create()
    const ref = { id: spec.id, generation: 1 }
    expect(await kindOf(suite.start(ref, { entrypoint: ['no-such-command'], cmd: [] }))).toBe('start_failed')
    expect((await suite.status(spec.id))?.state).not.toBe('running')
    const next = await suite.start({ id: spec.id, generation: 2 })
    expect(await suite.sh(next, 'echo up')).toMatchObject({ stdout: 'up\n' })
  })

  test('ten machines are created, used and destroyed at once', async () => {
    const refs = await Promise.all(Array.from({ length: 10 }, () => suite.running()))
    const answers = await Promise.all(refs.map((ref) => suite.sh(ref, `echo ${ref.id}`)))
    expect(answers.map((answer) => answer.stdout)).toEqual(refs.map((ref) => `${ref.id}\n`))
    await Promise.all(refs.map((ref) => suite.engine().destroy(ref.id)))
    const left = (await suite.engine().list()).map((machine) => machine.id)
    for (const { id } of refs) expect(left).not.toContain(id)
  })

  test('concurrent create, start, stop and destroy of one machine leave nothing behind', async () => {
    const spec = await suite.create()
    const engine = suite.engine()
    const ref = { id: spec.id, generation: 1 }
    await Promise.allSettled([
      suite.start(ref),
      engine.stop(ref, 0),
      engine.destroy(spec.id),
      suite.start(ref),
    ])
    await engine.destroy(spec.id)
    expect(await suite.status(spec.id)).toBeUndefined()
  })

  test('the capabilities of the engine include explanations for people', async () => {
    const { classes, defaultClass, defaultReason } = await suite.engine().capabilities()
    expect(classes.find((one) => one.class === suite.options.isolation)).toMatchObject({ available: true })
    for (const one of classes) expect(one.detail).not.toBe('')
    expect(classes.map((one) => one.class)).toContain(defaultClass)
    expect(defaultReason).not.toBe('')
  })

  test('repeated pulls of an image return the same digest', async () => {
    const [one, other] = await Promise.all([
      suite.engine().pull(suite.options.image),
      suite.engine().pull(suite.options.image),
    ])
    expect(one).toEqual(other)
    expect(one.digest).toBe(suite.imageDigest())
    expect(one.reference).toBe(suite.options.image)
  })
}
