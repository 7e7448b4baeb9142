// Templates that the official client builds, on real units.

import { BuildError, Sandbox, Template, waitForPort } from 'e2b'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
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
  expect((await sandbox.commands.run('echo $GREETING $E2B_TEMPLATE_ID')).stdout).toBe('hello greeting\n')
  expect(await sandbox.getInfo()).toMatchObject({ templateId: 'greeting', name: 'greeting', metadata: {} })
  const ofTemplate = { ...connection, query: { template: 'greeting' } }
  expect((await Sandbox.list(ofTemplate).nextItems()).map(({ sandboxId }) => sandboxId)).toEqual([
    sandbox.sandboxId,
  ])
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

it('files are copied into a template, and its environment can be added to', async () => {
  const connection = connectionTo(berth)
  const context = await mkdtemp(join(tmpdir(), 'berth-e2b-context-'))
  onTestFinished(async () => await rm(context, { recursive: true }))
  await mkdir(join(context, 'folder'))
  await writeFile(join(context, 'folder/file.txt'), 'copied')
  await symlink('file.txt', join(context, 'folder/link'))
  const template = Template({ fileContextPath: context })
    .fromTemplate('greeting')
    .copy('folder/*', 'here')
    .copy('folder/file.txt', '/opt/owned.txt', { user: 'root', mode: 0o600, forceUpload: true })
    .setEnvs({ MORE: 'more' })
    .runCmd('cat here/link')
    .setStartCmd('echo started >>started; exec sleep 1000', 'test -f started')
  await Template.build(template, 'copied', connection)
  const sandbox = await createSandbox(berth, { template: 'copied', envs: { OWN: 'own' } })
  const { stdout } = await sandbox.commands.run(
    'cat here/file.txt here/link; stat -c " %U %a" here/file.txt; sudo stat -c "%U %a" /opt/owned.txt; echo $GREETING $MORE $OWN',
  )
  expect(stdout).toBe('copiedcopied user 644\nroot 600\nhello more own\n')
  const begun = async (times: number, { files }: Sandbox) => {
    await expect.poll(async () => await files.read('started')).toBe('started\n'.repeat(times))
  }
  await begun(2, sandbox)
  const [copy] = await sandbox.fork()
  if (!(copy instanceof Sandbox)) throw new Error('no copy was made')
  await begun(3, copy)
  const { snapshotId } = await copy.createSnapshot()
  const again = await createSandbox(berth, { template: snapshotId })
  await begun(4, again)
  expect(await again.getInfo()).toMatchObject({ templateId: snapshotId, metadata: {} })
  await Promise.all([copy.kill(), again.kill(), Sandbox.deleteSnapshot(snapshotId, connection)])
  await sandbox.kill()
  await Sandbox.deleteSnapshot('copied', connection)
})

it('tags lead to a template until they are taken away', async () => {
  const connection = connectionTo(berth)
  const template = Template().fromTemplate('greeting').runCmd('true')
  const { templateId } = await Template.build(template, 'tagged', { ...connection, tags: ['v1', 'v2'] })
  const assigned = await Template.assignTags('tagged:v1', ['stable'], connection)
  expect(assigned).toMatchObject({ tags: ['stable'], buildId: expect.any(String) })
  await Template.removeTags('tagged', 'v2', connection)
  const tags = await Template.getTags(templateId, connection)
  expect(new Set(tags.map(({ tag }) => tag))).toEqual(new Set(['v1', 'stable']))
  const sandbox = await createSandbox(berth, { template: 'tagged:stable' })
  await sandbox.kill()
  await Template.removeTags('tagged', ['v1', 'stable'], connection)
  expect(await Template.exists('tagged', connection)).toBe(false)
})

it.each([
  ['base', Template().fromTemplate('never-built').runCmd('true'), /was not found/],
  ['1', Template().fromTemplate('greeting').setUser('nobody-here'), /nobody-here/],
  ['finalize', Template().fromTemplate('greeting').setStartCmd('./none', waitForPort(1)), /exit code 127/],
])('a build that fails tells that its step was %s', async (step, template, message) => {
  const connection = connectionTo(berth)
  const started = await Template.buildInBackground(template, `fails-at-${step}`, connection)
  const readStatus = async () => await Template.getBuildStatus(started, connection)
  await expect.poll(async () => (await readStatus()).status, { timeout: 60_000 }).toBe('error')
  expect((await readStatus()).reason).toMatchObject({ step, message: expect.stringMatching(message) })
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
  const { body } = await berth.call<{ units: { metadata: object }[] }>(
    'GET',
    '/v1/units?stack=sandbox-snapshots',
  )
  const kept = body.units.filter(({ metadata }) => !('templateFiles' in metadata))
  expect(kept).toHaveLength(2)
})
