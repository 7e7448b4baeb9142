import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { keepWithLibraries } from './kept-monitor.ts'

it('a program that is kept with its libraries runs from the kept files alone', async () => {
  const home = await mkdtemp(join(tmpdir(), 'berth-monitor-'))
  onTestFinished(async () => await rm(home, { recursive: true }))
  const { program, command, env } = await keepWithLibraries(home, '/bin/cat')
  const [loader, ...args] = command
  const cat = spawn(loader, args, { env: { ...env, LC_ALL: 'C' }, stdio: 'pipe' })
  cat.stdin.write('on')
  const [said] = (await once(cat.stdout, 'data')) as [Buffer]
  const maps = await readFile(`/proc/${cat.pid}/maps`, 'utf8')
  cat.stdin.end()
  await once(cat, 'close')
  expect(said.toString()).toBe('on')
  const files = new Set([...maps.matchAll(/ (\/.*)$/gm)].map(([, file]) => file ?? ''))
  expect(files.size).toBeGreaterThan(2)
  expect([...files].filter((file) => !file.startsWith(join(home, program ?? '')))).toEqual([])
})
