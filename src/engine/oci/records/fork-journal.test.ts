import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { forgetFork, recordFork, rollBackIncompleteForks } from './fork-journal.ts'
import { createPaths, type Paths } from '../paths.ts'

let paths: Paths
beforeEach(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-journal-'))
  onTestFinished(async () => await rm(dataDir, { recursive: true }))
  paths = createPaths({ dataDir, runDir: dataDir })
  await mkdir(paths.forks)
})

const record = async (id: string, generation = 0) => {
  await mkdir(paths.machine(id).dir, { recursive: true })
  await writeFile(paths.machine(id).record, JSON.stringify({ generation }))
}
const recorded = () => ['a', 'b', 'c'].filter((id) => existsSync(paths.machine(id).record))

test('rollBackIncompleteForks removes all records of a fork if one copy was not recorded', async () => {
  await recordFork(paths, ['a', 'b', 'c'])
  await record('a')
  await record('c')
  await rollBackIncompleteForks(paths)
  expect([recorded(), await readdir(paths.forks)]).toEqual([[], []])
})

test('rollBackIncompleteForks keeps the records if all copies were recorded', async () => {
  await recordFork(paths, ['a', 'b'])
  await record('a')
  await record('b')
  await rollBackIncompleteForks(paths)
  expect([recorded(), await readdir(paths.forks)]).toEqual([['a', 'b'], []])
})

test('rollBackIncompleteForks keeps a copy that has run since', async () => {
  await recordFork(paths, ['a', 'b'])
  await record('b', 1)
  await rollBackIncompleteForks(paths)
  expect([recorded(), await readdir(paths.forks)]).toEqual([['b'], []])
})

test('rollBackIncompleteForks ignores forgotten forks and unfinished journal entries', async () => {
  await recordFork(paths, ['a', 'b'])
  await forgetFork(paths, ['a', 'b'])
  await writeFile(join(paths.forks, 'b.json.new'), '["b","c"')
  await record('b')
  await rollBackIncompleteForks(paths)
  expect([recorded(), await readdir(paths.forks)]).toEqual([['b'], []])
})
