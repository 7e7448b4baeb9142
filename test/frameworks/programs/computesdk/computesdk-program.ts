// The provider by ComputeSDK's own client, call by call.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Berth } from '@berth/sdk'
import { berth as provider } from '@berth/sdk/computesdk'
import { compute, type SandboxInterface } from 'computesdk'
import { runOnce } from './sandbox.ts'

const berth = new Berth()
const image = 'berth.local/python:3.11'
let sandbox: SandboxInterface
before(async () => {
  // The first unit of an image waits until that is built.
  await using unit = await berth.units.create(image, { timeoutMs: 600_000 })
  assert.equal(unit.state, 'running')
  compute.setConfig({ provider: provider({ image }) })
  sandbox = await compute.sandbox.create({ envs: { COLOUR: 'blue' } })
})
after(async () => await sandbox.destroy())

describe('commands', () => {
  it('run with a directory and an environment, and answer their code', async () => {
    const asked = { cwd: '/tmp', env: { A: 'b' } }
    const ended = await sandbox.runCommand('pwd; echo $A $COLOUR; echo no >&2; exit 3', asked)
    assert.deepEqual([ended.stdout, ended.stderr, ended.exitCode], ['/tmp\nb blue\n', 'no\n', 3])
    assert.equal((await sandbox.runCommand('sleep 60', { timeout: 300 })).exitCode, 124)
  })

  it('stream their output while they run, without a program in the unit', async () => {
    const times: number[] = []
    const onStdout = () => void times.push(performance.now())
    const ended = await sandbox.runCommand('echo one; sleep 1; echo two', { onStdout })
    assert.deepEqual([ended.stdout, ended.exitCode], ['one\ntwo\n', 0])
    assert.ok((times.at(-1) ?? 0) - (times[0] ?? 0) > 500)
    const unit = await berth.units.get(sandbox.sandboxId)
    const { processes } = await unit.processes.table()
    assert.ok(!JSON.stringify(processes).includes('daemon'))
  })

  it('go on in the background', async () => {
    await sandbox.runCommand('sleep 0.5; echo late >/tmp/late', { background: true })
    await sandbox.runCommand('while ! test -s /tmp/late; do sleep 0.1; done')
    assert.equal(await sandbox.filesystem.readFile('/tmp/late'), 'late\n')
  })
})

it('files are written, read, listed, found and removed', async () => {
  const { filesystem } = sandbox
  await filesystem.mkdir('/app/deep')
  await filesystem.writeFile('/app/a file', 'x'.repeat(2_000_000))
  assert.equal((await filesystem.readFile('/app/a file')).length, 2_000_000)
  const listed = (await filesystem.readdir('/app')).map(({ name, type, size }) => [name, type, size])
  assert.deepEqual(listed[0], ['a file', 'file', 2_000_000])
  assert.deepEqual(listed[1]?.slice(0, 2), ['deep', 'directory'])
  assert.equal(await filesystem.exists('/app/deep'), true)
  await filesystem.remove('/app')
  assert.equal(await filesystem.exists('/app/deep'), false)
  await assert.rejects(async () => await filesystem.readFile('/app/a file'))
})

it('a sandbox is found by its id, described, and published at a URL', async () => {
  const found = await compute.sandbox.getById(sandbox.sandboxId)
  assert.equal(found?.sandboxId, sandbox.sandboxId)
  assert.equal((await sandbox.getInfo()).status, 'running')
  assert.match(await sandbox.getUrl({ port: 8080 }), /^https?:/)
})

it('a snapshot makes sandboxes with the files of its moment', async () => {
  const { sandbox: sandboxes, snapshot } = provider({ image })
  assert.ok(snapshot)
  await sandbox.filesystem.writeFile('/root/kept', 'before')
  const { id } = await snapshot.create(sandbox.sandboxId, { name: 'kept' })
  await sandbox.filesystem.writeFile('/root/kept', 'after')
  const copy = await sandboxes.create({ snapshotId: id })
  assert.equal(await copy.filesystem.readFile('/root/kept'), 'before')
  await copy.destroy()
  await snapshot.delete(id)
  assert.deepEqual(await snapshot.list(), [])
})

it('the example runs its command in a unit that is gone afterwards', async () => {
  assert.equal(await runOnce('python3 -c "print(6 * 7)"'), '42\n')
  assert.deepEqual(
    (await berth.units.list().all()).map(({ id }) => id),
    [sandbox.sandboxId],
  )
})
