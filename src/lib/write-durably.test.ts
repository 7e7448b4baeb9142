import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeDurably } from './write-durably.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-write-'))
})
afterAll(async () => await rm(directory, { recursive: true }))

it('a file for another user replaces links in its directory, and writes nothing through them', async () => {
  const [other, file] = [join(directory, 'other'), join(directory, 'file')]
  await writeFile(other, 'kept')
  await symlink(other, `${file}.new`)
  await symlink(other, file)
  const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  await writeDurably(file, 'new', 0o400, owner)
  expect(await readFile(file, 'utf8')).toBe('new')
  expect(await readFile(other, 'utf8')).toBe('kept')
})
