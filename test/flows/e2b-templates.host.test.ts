// Templates that the official client builds, on real units.

import { BuildError, Sandbox, Template } from 'e2b'
import { expect, it } from 'vitest'
import { connectionTo, createSandbox } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })

it('a template is built step by step, and sandboxes are made of it', async () => {
  const connection = connectionTo(berth)
  const said: string[] = []
  const template = Template()
    .fromBaseImage()
    .setEnvs({ GREETING: 'hello' })
    .setWorkdir('/app')
    .runCmd(['echo "$GREETING from $(whoami) in $(pwd)" >made', 'echo built'])
    .runCmd('id -un >/as-root', { user: 'root' })
  const built = await Template.build(template, 'greeting', {
    ...connection,
    onBuildLogs: ({ message }) => void said.push(message),
  })
  expect(built).toMatchObject({ name: 'greeting', tags: ['default'] })
  expect(said).toContain('built')
  expect(await Template.exists('greeting', connection)).toBe(true)
  expect(await Template.aliasExists('other', connection)).toBe(false)
  const sandbox = await createSandbox(berth, { template: 'greeting' })
  expect(await sandbox.files.read('/app/made')).toBe('hello from user in /app\n')
  expect(await sandbox.files.read('/as-root')).toBe('root\n')
  expect((await sandbox.commands.run('echo $GREETING')).stdout).toBe('hello\n')
  await sandbox.kill()
})

it('a template is built of another, and replaces the one of its name and tag', async () => {
  const connection = connectionTo(berth)
  for (const content of ['one', 'two']) {
    const template = Template().fromTemplate('greeting').runCmd(`echo ${content} >~/content`)
    await Template.build(template, 'greeting:more', connection)
  }
  const found = await Sandbox.listSnapshots({ ...connection, name: 'greeting' }).nextItems()
  expect(found.map(({ names }) => names)).toEqual([['greeting:more'], ['greeting:default']])
  const sandbox = await createSandbox(berth, { template: 'greeting:more' })
  expect(await sandbox.files.read('content')).toBe('two\n')
  expect(await sandbox.files.exists('/app/made')).toBe(true)
  await sandbox.kill()
})

it('a build that fails says why, and leaves nothing', async () => {
  const connection = connectionTo(berth)
  const template = Template().fromBaseImage().runCmd('echo not so >&2; exit 3')
  await expect(Template.build(template, 'failing', connection)).rejects.toThrow(BuildError)
  const started = await Template.buildInBackground(template, 'failing', connection)
  await expect
    .poll(async () => await Template.getBuildStatus(started, connection), { timeout: 60_000 })
    .toMatchObject({ status: 'error', reason: { message: expect.stringContaining('not so'), step: '1' } })
  expect(await Template.exists('failing', connection)).toBe(false)
  const { body } = await berth.call<{ units: unknown[] }>('GET', '/v1/units?stack=sandbox-snapshots')
  expect(body.units).toHaveLength(2)
  await expect(Template.assignTags('greeting', ['stable'], connection)).rejects.toThrow(/not supported/)
})
