// One team fills its share of the pool, and other teams are not affected (decisions/disks-and-logs.md).

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { poolState } from '../../src/engine/oci/storage/pool.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'

let host: HostEngine
const suite = createHostSuite('runc', () => host)
beforeAll(async () => {
  host = await openHostEngine({ isolation: 'runc', poolGb: 6, teamDiskPercent: 50 })
  await suite.open()
})
afterAll(async () => await suite.close())

it('a team with a full disk share is refused more space in all its units, but other teams are not affected', async () => {
  const greedy = { volume: { mount: '/data', gb: 500 } }
  const first = await suite.running({}, greedy)
  const allocate = async (ref: typeof first, name: string, size: string) =>
    await suite.sh(ref, `fallocate -l ${size} /data/${name} 2>&1; ls /data`)

  expect((await allocate(first, 'whole', '20G')).stdout).toMatch(/quota exceeded/i)
  expect((await allocate(first, 'much', '2500M')).stdout).not.toMatch(/exceeded/i)
  expect((await allocate(first, 'more', '1G')).stdout).toMatch(/quota exceeded/i)
  const second = await suite.running({}, greedy)
  expect((await allocate(second, 'more', '1G')).stdout).toMatch(/quota exceeded/i)

  const copy = { id: `${first.id}c`, generation: 1 }
  await host.engine().fork([{ id: copy.id, source: first, networkGroup: 1, run: null }])
  await suite.reopen()
  await suite.start(copy)
  expect((await allocate(copy, 'more', '1G')).stdout).toMatch(/quota exceeded/i)
  // Control: qgroups must be consistent, or no limit would be enforced.
  const state = (await poolState(host.paths)) ?? ''
  expect((await readFile(join(state, 'qgroups/inconsistent'), 'utf8')).trim()).toBe('0')

  const other = await suite.running({}, { volume: { mount: '/data', gb: 1 }, networkGroup: 2 })
  expect((await allocate(other, 'own', '900M')).stdout).toBe('own\n')
  const written = await host.engine().writeFile(other, '/root/file', Buffer.from('kept'))
  expect(written).toMatchObject({ bytes: 4, verified: true })

  expect((await suite.sh(first, 'rm /data/much && sync && echo removed')).stdout).toBe('removed\n')
  for (const ref of [first, second, copy, other]) await host.engine().destroy(ref.id)
})
