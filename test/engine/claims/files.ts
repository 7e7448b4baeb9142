import { createHash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { kindOf, type Suite } from '../suite.ts'

const MB = 1024 * 1024

export function fileClaims(suite: Suite): void {
  const machine = suite.shared()
  const write = async (path: string, content: Buffer | string) =>
    await suite.engine().writeFile(machine(), path, Buffer.from(content))
  const read = async (path: string, maxBytes = MB) =>
    (await suite.engine().readFile(machine(), path, maxBytes)).content

  test('a file is written, verified in the machine, and read back', async () => {
    for (const content of [Buffer.from('text\n'), Buffer.alloc(0), randomBytes(MB)]) {
      const sha256 = createHash('sha256').update(content).digest('hex')
      expect(await write('/root/file', content)).toEqual({ bytes: content.length, sha256, verified: true })
      expect((await read('/root/file')).equals(content)).toBe(true)
    }
  })

  test('commands see written files, and files written by commands can be read', async () => {
    for (let round = 0; round < 3; round += 1) {
      await write('/tmp/shared', `from outside ${round}`)
      expect((await suite.exec(machine(), ['cat', '/tmp/shared'])).stdout).toBe(`from outside ${round}`)
      await suite.sh(machine(), `echo inside ${round} > /tmp/shared`)
      expect((await read('/tmp/shared')).toString()).toBe(`inside ${round}\n`)
    }
  })

  test('missing parent directories of a file are created', async () => {
    expect(await write('/srv/a/b/c/file', 'deep')).toMatchObject({ verified: true })
    expect((await read('/srv/a/b/c/file')).toString()).toBe('deep')
  })

  test('file names with spaces, quotes, dashes, newlines and Unicode work', async () => {
    for (const name of ['with space', `it's "q" $HOME`, '-rf', 'two\nlines', 'é✓', '*', 'n'.repeat(255)]) {
      expect(await write(`/tmp/${name}`, name)).toMatchObject({ verified: true })
      expect((await read(`/tmp/${name}`)).toString()).toBe(name)
    }
  })

  test('an invalid path is refused', async () => {
    const bad = [
      '',
      'relative',
      '/tmp/../etc/passwd',
      '/..',
      '/tmp/nul\0byte',
      '/',
      '/tmp/',
      `/${'n'.repeat(5000)}`,
      `/tmp/${'n'.repeat(256)}`,
      `/tmp${'/d'.repeat(3000)}`,
    ]
    for (const path of bad) {
      expect([path, await kindOf(write(path, 'x'))]).toEqual([path, 'bad_path'])
      expect([path, await kindOf(read(path))]).toEqual([path, 'bad_path'])
    }
  })

  test('a directory cannot be read or written as a file', async () => {
    expect(await kindOf(write('/etc', 'x'))).toBe('not_a_file')
    expect(await kindOf(read('/etc'))).toBe('not_a_file')
  })

  test('a missing file fails with file_not_found', async () => {
    expect(await kindOf(read('/tmp/not-there'))).toBe('file_not_found')
    expect(await kindOf(read('/no/such/directory/file'))).toBe('file_not_found')
  })

  test('a file above the requested size fails with file_too_large', async () => {
    await write('/tmp/thousand', Buffer.alloc(1000))
    expect((await read('/tmp/thousand', 1000)).length).toBe(1000)
    expect(await kindOf(read('/tmp/thousand', 999))).toBe('file_too_large')
  })

  test('concurrent writes to one file leave one of them complete', async () => {
    const contents = Array.from({ length: 8 }, (_, i) => Buffer.alloc(100_000, i))
    await Promise.all(contents.map((content) => write('/tmp/contended', content)))
    const found = await read('/tmp/contended')
    expect(contents.some((content) => content.equals(found))).toBe(true)
  })
}
