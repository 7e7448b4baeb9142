// Snapshots of sandboxes, by the official client, on real units of both classes.

import { Sandbox, SandboxNotFoundError } from 'e2b'
import { beforeAll, describe, expect, it } from 'vitest'
import { connectionTo, createSandbox } from '../support/e2b.ts'
import { usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth(null)

describe.each(usualClasses)('with %s, a snapshot of a sandbox', (isolation) => {
  let sandbox: Sandbox
  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
    sandbox = await createSandbox(berth)
  })

  const idsOf = async (name?: string): Promise<string[]> => {
    const found = await sandbox.listSnapshots({ ...connectionTo(berth), ...(name && { name }) }).nextItems()
    return found.map(({ snapshotId }) => snapshotId)
  }

  it('has the files of that moment, is made into sandboxes of their own, and outlives its source', async () => {
    const source = await createSandbox(berth)
    await source.files.write('state', 'before')
    const { snapshotId } = await source.createSnapshot()
    expect(await source.isRunning()).toBe(true)
    await source.files.write('state', 'after')
    await source.kill()
    const metadata = { made: 'of a snapshot' }
    const made = await Promise.all(
      [1, 2].map(
        async () => await createSandbox(berth, { template: snapshotId, metadata, timeoutMs: 60_000 }),
      ),
    )
    await made[0]?.files.write('state', 'changed')
    expect(await made[1]?.files.read('state')).toBe('before')
    const info = await made[1]?.getInfo()
    expect(info).toMatchObject({ state: 'running', metadata })
    await Promise.all(made.map(async (each) => await each.kill()))
    expect(await Sandbox.deleteSnapshot(snapshotId, connectionTo(berth))).toBe(true)
    expect(await Sandbox.deleteSnapshot(snapshotId, connectionTo(berth))).toBe(false)
    await expect(createSandbox(berth, { template: snapshotId })).rejects.toThrow(/no template/)
  })

  it('is found by its sandbox, its name and its tag, and is no sandbox itself', async () => {
    const first = await sandbox.createSnapshot({ name: 'kept' })
    const second = await sandbox.createSnapshot({ name: 'kept:v2' })
    expect([first.names, second.names]).toEqual([['kept:default'], ['kept:v2']])
    expect(await idsOf()).toEqual([second.snapshotId, first.snapshotId])
    expect(await idsOf('kept:v2')).toEqual([second.snapshotId])
    const all = await Sandbox.list(connectionTo(berth)).nextItems()
    expect(all.map(({ sandboxId }) => sandboxId)).not.toContain(first.snapshotId)
    await expect(Sandbox.connect(first.snapshotId, connectionTo(berth))).rejects.toThrow(SandboxNotFoundError)
    const made = await createSandbox(berth, { template: 'kept:v2' })
    expect(await made.isRunning()).toBe(true)
    await made.kill()
    expect(await Sandbox.deleteSnapshot('kept:v2', connectionTo(berth))).toBe(true)
    expect(await idsOf()).toEqual([first.snapshotId])
  })

  it('of a paused sandbox leaves it paused', async () => {
    const paused = await createSandbox(berth)
    await paused.files.write('kept', 'kept')
    await paused.pause()
    const { snapshotId } = await paused.createSnapshot()
    expect((await paused.getInfo()).state).toBe('paused')
    const made = await createSandbox(berth, { template: snapshotId, allowInternetAccess: false })
    expect(await made.files.read('kept')).toBe('kept')
    expect(await made.getInfo()).toMatchObject({ allowInternetAccess: false })
  })
})
