import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { copying } from './copy-files.ts'

let place: string
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'berth-copying-'))
  const from = join(place, 'from')
  mkdirSync(join(from, 'folder/below'), { recursive: true })
  mkdirSync(join(place, 'to'))
  writeFileSync(join(from, 'folder/one.txt'), 'one')
  writeFileSync(join(from, 'folder/below/two.txt'), 'two')
  symlinkSync('one.txt', join(from, 'folder/link'))
})
afterEach(() => rmSync(place, { recursive: true }))

function copy(source: string, destination: string, mode = ''): void {
  const archive = join(place, 'archive.tar.gz')
  execFileSync('tar', ['-czf', archive, '-C', join(place, 'from'), 'folder'])
  const owner = userInfo().username
  const [program = '', ...args] = copying({ archive, source, destination, owner, mode })
  execFileSync(program, args, { cwd: join(place, 'to') })
  expect(() => statSync(archive)).toThrow(/ENOENT/)
}
const read = (path: string) => readFileSync(join(place, 'to', path), 'utf8')

it('a file becomes the destination, or goes into it where that is a directory', () => {
  copy('folder/one.txt', 'new/name.txt')
  expect(read('new/name.txt')).toBe('one')
  copy('folder/one.txt', 'slash/')
  expect(read('slash/one.txt')).toBe('one')
  copy('folder/one.txt', 'new')
  expect(read('new/one.txt')).toBe('one')
})

it.each(['folder', 'folder/', './folder', 'folder/*', 'folder/**/*.txt'])(
  'what is in %s goes into the destination, beside what is there',
  (source) => {
    mkdirSync(join(place, 'to/there/below'), { recursive: true })
    writeFileSync(join(place, 'to/there/below/kept'), 'kept')
    copy(source, 'there')
    expect([read('there/one.txt'), read('there/below/two.txt'), read('there/link')]).toEqual([
      'one',
      'two',
      'one',
    ])
    expect(read('there/below/kept')).toBe('kept')
  },
)

it('a mode is that of all that was copied', () => {
  copy('folder/one.txt', 'script', '0750')
  expect(statSync(join(place, 'to/script')).mode & 0o777).toBe(0o750)
})
