import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { createPaths } from '../paths.ts'
import {
  beginMachine,
  applyRunningMark,
  loadRecords,
  type MachineRecord,
  markRunning,
  newRecord,
  saveRecord,
} from './record.ts'

const directory = await mkdtemp('/var/tmp/berth-records-')
const paths = createPaths({ dataDir: directory, runDir: join(directory, 'run') })
const size = { cpus: 1, memoryMb: 64, pids: 64, diskGb: 1 }
const spec = { id: 'one', imageDigest: '', isolation: 'runc', size, volume: null, networkGroup: 1 } as const
const monitor = { pid: 7, startTime: '70' }
const run = paths.run('one', 3)

beforeEach(async () => {
  await rm(run.dir, { recursive: true, force: true })
  await mkdir(run.dir, { recursive: true })
  await beginMachine(paths, 'one')
})
afterAll(async () => await rm(directory, { recursive: true }))

/** As the next engine finds it. */
async function found(state: MachineRecord['state']): Promise<MachineRecord | undefined> {
  await saveRecord(paths, { ...newRecord(spec, '10.0.0.2'), generation: 3, state })
  const { records } = await loadRecords(paths.machines)
  for (const record of records) applyRunningMark(paths.run(record.spec.id, record.generation), record)
  return records[0]
}

it('a run whose record says that it starts goes on if its directory says so, under the monitor that is named there', async () => {
  markRunning(run, monitor)
  expect(await found('starting')).toMatchObject({ state: 'running', generation: 3, monitor })
})

it('a run whose directory says nothing, as after a loss of power, is starting still', async () => {
  expect(await found('starting')).toMatchObject({ state: 'starting', monitor: null })
})

it('a run that has ended does not go on, whatever its directory says', async () => {
  markRunning(run, monitor)
  expect(await found('exited')).toMatchObject({ state: 'exited', monitor: null })
})

it('a record is saved where its machine has no directory yet', async () => {
  await rm(paths.machines, { recursive: true })
  expect(await found('created')).toMatchObject({ state: 'created' })
})
