import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { forgetPrograms, keepProgram, noteShown, shownOf } from './kept-programs.ts'

let home: string
const kept = () => join(home, 'programs')
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'berth-programs-'))
  onTestFinished(async () => await rm(home, { recursive: true }))
  await writeFile(join(home, 'runsc'), 'first')
})

it('a kept program stays what it was when another one takes its path', async () => {
  const first = await keepProgram(kept(), join(home, 'runsc'))
  await writeFile(join(home, 'runsc.new'), 'second')
  await rename(join(home, 'runsc.new'), join(home, 'runsc'))
  const second = await keepProgram(kept(), join(home, 'runsc'))
  expect(second.program).not.toBe(first.program)
  expect(await readFile(first.path, 'utf8')).toBe('first')
  expect(await readFile(second.path, 'utf8')).toBe('second')
})

it('a program is kept once, with the side programs beside it and with what its probe has shown', async () => {
  await mkdir(join(home, 'gvisor-bin'))
  await writeFile(join(home, 'gvisor-bin/gvisor_sentry'), 'side')
  const first = await keepProgram(kept(), join(home, 'runsc'))
  await noteShown(first, { version: '1' })
  expect(await keepProgram(kept(), join(home, 'runsc'))).toEqual(first)
  expect(await readFile(join(dirname(first.path), 'gvisor-bin/gvisor_sentry'), 'utf8')).toBe('side')
  expect(await shownOf(kept(), first.program)).toEqual({ version: '1' })
})

it('the same program in another image is the same one, and is whole again after a part of it was lost', async () => {
  const first = await keepProgram(kept(), join(home, 'runsc'))
  await noteShown(first, { version: '1' })
  await mkdir(join(home, 'next'))
  await writeFile(join(home, 'next/runsc'), 'first')
  expect(await keepProgram(kept(), join(home, 'next/runsc'))).toEqual(first)
  expect(await shownOf(kept(), first.program)).toEqual({ version: '1' })
  await rm(first.path)
  expect(await keepProgram(kept(), join(home, 'next/runsc'))).toEqual(first)
  expect(await readFile(first.path, 'utf8')).toBe('first')
})

it('programs that nothing needs are removed, and the others stay', async () => {
  const first = await keepProgram(kept(), join(home, 'runsc'))
  await writeFile(join(home, 'other'), 'other')
  const other = await keepProgram(kept(), join(home, 'other'))
  await forgetPrograms(kept(), new Set([other.program]))
  await expect(readFile(first.path)).rejects.toThrow('ENOENT')
  expect(await readFile(other.path, 'utf8')).toBe('other')
})
