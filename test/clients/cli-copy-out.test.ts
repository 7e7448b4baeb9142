// Folders of a hostile unit, copied to this computer by `berth cp`.

import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Context } from '../../packages/cli/src/context.ts'
import { copyOut } from '../../packages/cli/src/copy-out.ts'
import { ending, type Entry, headerOf, paddingOf } from '../../packages/cli/src/tar.ts'

let directory: string
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), 'berth-copy-out-'))))
afterAll(async () => await rm(directory, { recursive: true }))

const file = (name: string, content = 'planted'): Buffer[] => [
  headerOf({ type: 'file', name, mode: 0o644, bytes: content.length, target: '' }),
  Buffer.from(content),
  paddingOf(content.length),
]
const other = (type: Entry['type'], name: string, target = ''): Buffer[] => [
  headerOf({ type, name, mode: 0o755, bytes: 0, target }),
]

/** Copies a folder of a unit that answers with these entries. */
async function copy(entries: Buffer[][], to: string): Promise<unknown> {
  const parts = [...other('directory', './'), ...entries.flat(), ending()]
  const unit = {
    name: 'hostile',
    files: { archive: async () => new Blob(parts.map((part) => Uint8Array.from(part))).stream() },
  }
  const context = {
    signal: new AbortController().signal,
    berth: () => ({ units: { get: async () => unit } }),
  }
  return await copyOut(context as unknown as Context, { unit: 'unit_1', path: '/x' }, to)
}

describe('an archive of a hostile unit', () => {
  it.each<[string, Buffer[][]]>([
    ['names a file above the folder', [file('../victim')]],
    ['names a file above the folder from below', [other('directory', './a'), file('./a/../../victim')]],
    ['brings a link to a folder and a file behind it', [other('link', './a', '..'), file('./a/victim')]],
    ['names a link of the folder as a file', [file('./there')]],
    ['names a link of the folder as a folder', [file('./up/victim')]],
    ['copies a file from above by a hard link', [[hardLink('./copy', '../victim')]]],
  ])('changes nothing outside of the folder where it %s', async (_what, entries) => {
    const place = await mkdtemp(join(directory, 'place-'))
    const to = join(place, 'to')
    await mkdir(to)
    await writeFile(join(place, 'victim'), 'mine')
    await symlink('../victim', join(to, 'there'))
    await symlink('..', join(to, 'up'))
    await copy(entries, `${to}/../to`).catch(() => {})
    await copy(entries, join(place, 'x')).catch(() => {})
    expect(await readFile(join(place, 'victim'), 'utf8')).toBe('mine')
    expect((await readdir(place)).filter((name) => name === 'planted')).toEqual([])
  })
})

function hardLink(name: string, target: string): Buffer {
  const header = headerOf({ type: 'link', name, mode: 0o644, bytes: 0, target })
  header.write('        1', 148)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
