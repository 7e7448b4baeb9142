// Files of any size as streams, their owners, and what is done with them in place.

import { createHash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { kindOf, type Suite } from '../suite.ts'

const MB = 1024 * 1024
const never = new AbortController().signal

function toolsOf(suite: Suite) {
  const machine = suite.shared()
  return {
    machine,
    write: async (path: string, content: Buffer | string, owner = {}) =>
      await suite.engine().writeFile(machine(), path, Buffer.from(content), owner),
    read: async (path: string) => (await suite.engine().readFile(machine(), path, MB)).content.toString(),
    receive: async (path: string, pieces: AsyncIterable<Buffer>, owner = {}, signal = never) =>
      await suite.engine().receiveFile(machine(), path, pieces, owner, signal),
    send: async (path: string) => {
      const pieces: Buffer[] = []
      let mode = 0
      await suite.engine().sendFile(
        machine(),
        path,
        (said) => void (mode = said),
        (piece) => void pieces.push(piece),
        never,
      )
      return { mode, content: Buffer.concat(pieces) }
    },
    facts: async (path: string) => await suite.engine().statFile(machine(), path),
    make: async (path: string, owner = {}) => await suite.engine().makeDirectory(machine(), path, owner),
    move: async (from: string, to: string, user?: string) =>
      await suite.engine().moveFile(machine(), from, to, user),
    names: async (path: string, depth?: number) =>
      (await suite.engine().listDirectory(machine(), path, depth)).entries.map(({ name }) => name),
  }
}

async function* inPieces(content: Buffer, bytes = 64 * 1024): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += bytes) yield content.subarray(at, at + bytes)
}

async function* breakingOff(content: Buffer): AsyncGenerator<Buffer> {
  yield* inPieces(content)
  throw new Error('the sender went away')
}

/** Of every engine. */
export function placedFileClaims(suite: Suite): void {
  const { machine, write, read, receive, send, facts, make, move, names } = toolsOf(suite)

  test('a file larger than one answer is written and read as a stream', async () => {
    for (const bytes of [0, 1, 3 * MB + 7]) {
      const content = randomBytes(bytes)
      const sha256 = createHash('sha256').update(content).digest('hex')
      const written = await receive('/srv/streams/large', inPieces(content), { mode: 0o640 })
      expect(written).toEqual({ bytes, sha256, verified: true })
      const sent = await send('/srv/streams/large')
      expect(sent.mode).toBe(0o640)
      expect(sent.content.equals(content)).toBe(true)
    }
  })

  test('a stream that breaks off leaves the file as it was, and nothing beside it', async () => {
    await write('/srv/broken/file', 'before')
    await expect(receive('/srv/broken/file', breakingOff(randomBytes(MB)))).rejects.toThrow(
      'the sender went away',
    )
    expect(await read('/srv/broken/file')).toBe('before')
    await expect.poll(() => names('/srv/broken')).toEqual(['file'])
  })

  test('a stream of what is not there, or is no file, is refused', async () => {
    expect(await kindOf(send('/srv/nowhere'))).toBe('file_not_found')
    expect(await kindOf(send('/etc'))).toBe('not_a_file')
    expect(await kindOf(receive('/etc', inPieces(Buffer.from('x'))))).toBe('not_a_file')
    expect(await kindOf(receive('relative', inPieces(Buffer.from('x'))))).toBe('bad_path')
  })

  test('a file belongs to the user that was asked for, by name or by number, and else to root', async () => {
    for (const user of ['daemon', '1']) {
      await write(`/srv/owned/by-${user}`, 'x', { user })
      expect(await facts(`/srv/owned/by-${user}`)).toMatchObject({
        uid: 1,
        gid: 1,
        owner: 'daemon',
        bytes: 1,
      })
    }
    await write('/srv/owned/by-daemon', 'again')
    expect(await facts('/srv/owned/by-daemon')).toMatchObject({ owner: 'daemon', bytes: 5 })
    await receive('/srv/owned/streamed', inPieces(Buffer.from('x')), { user: 'daemon' })
    expect(await facts('/srv/owned/streamed')).toMatchObject({ owner: 'daemon' })
    await write('/srv/owned/plain', 'x')
    expect(await facts('/srv/owned/plain')).toMatchObject({ uid: 0, owner: 'root', group: 'root' })
  })

  test('a user that the machine does not have is refused, and nothing is written', async () => {
    expect(await kindOf(write('/srv/unknown', 'x', { user: 'nobody-of-that-name' }))).toBe('unknown_user')
    expect(await kindOf(make('/srv/unknown', { user: '4711' }))).toBe('unknown_user')
    expect(await kindOf(facts('/srv/unknown'))).toBe('file_not_found')
  })

  test('the facts of a path say its type, size, mode and time', async () => {
    await write('/srv/facts/file', 'four', { mode: 0o600 })
    const found = await facts('/srv/facts/file')
    expect(found).toMatchObject({ type: 'file', bytes: 4, mode: 0o600, target: null })
    expect(Math.abs(found.modifiedAt.getTime() - Date.now())).toBeLessThan(600_000)
    expect(await facts('/srv/facts')).toMatchObject({ type: 'directory', target: null })
    expect(await facts('/')).toMatchObject({ type: 'directory' })
    expect(await kindOf(facts('/srv/facts/none'))).toBe('file_not_found')
  })

  test('a directory is made once, with those above it', async () => {
    expect(await make('/srv/made/a/b', { user: 'daemon', mode: 0o700 })).toBe(true)
    expect(await make('/srv/made/a/b')).toBe(false)
    expect(await facts('/srv/made/a/b')).toMatchObject({ type: 'directory', owner: 'daemon', mode: 0o700 })
    await write('/srv/made/file', 'x')
    expect(await kindOf(make('/srv/made/file'))).toBe('not_a_directory')
  })

  test('a file and a directory are moved, and a file in their way is replaced', async () => {
    await write('/srv/moved/old', 'content')
    await write('/srv/moved/new', 'in the way')
    await move('/srv/moved/old', '/srv/moved/new')
    expect(await read('/srv/moved/new')).toBe('content')
    await write('/srv/moved/tree/deep/file', 'x')
    await move('/srv/moved/tree', '/srv/moved/far/away')
    expect(await read('/srv/moved/far/away/deep/file')).toBe('x')
    expect(await names('/srv/moved')).toEqual(['far', 'new'])
    expect(await kindOf(move('/srv/moved/old', '/srv/moved/x'))).toBe('file_not_found')
    expect(await kindOf(move('/srv/moved/new', '/srv/moved/far'))).toBe('not_a_file')
  })

  test('a directory is listed as far down as is asked, with the owner of each entry', async () => {
    await write('/srv/deep/a/b/c', 'x')
    await write('/srv/deep/file', 'x', { user: 'daemon' })
    expect(await names('/srv/deep')).toEqual(['a', 'file'])
    expect(await names('/srv/deep', 2)).toEqual(['a', 'a/b', 'file'])
    expect(await names('/srv/deep', 9)).toEqual(['a', 'a/b', 'a/b/c', 'file'])
    const { entries } = await suite.engine().listDirectory(machine(), '/srv/deep')
    expect(entries.at(-1)).toMatchObject({ name: 'file', owner: 'daemon', uid: 1 })
  })
}

/** Of an engine with links, devices and accounts. */
export function hostilePlaceClaims(suite: Suite): void {
  const { machine, facts, make, move, names, receive, write } = toolsOf(suite)

  test('the facts of a link are those of the link itself, with where it leads', async () => {
    await suite.sh(machine(), 'mkdir -p /srv/links && ln -s "no where" /srv/links/dangling')
    expect(await facts('/srv/links/dangling')).toMatchObject({ type: 'link', target: 'no where' })
  })

  test('directories that are made above a path belong to the user too', async () => {
    await write('/srv/above/one/two/file', 'x', { user: 'daemon' })
    await make('/srv/over/one/two', { user: 'daemon' })
    const { stdout } = await suite.sh(
      machine(),
      'stat -c %U /srv /srv/above /srv/above/one/two /srv/over/one',
    )
    expect(stdout).toBe('root\ndaemon\ndaemon\ndaemon\n')
  })

  test('a link is moved itself, and a dangling one in the way is replaced', async () => {
    await suite.sh(machine(), 'mkdir -p /srv/go && cd /srv/go && ln -s /etc/passwd one && ln -s nowhere two')
    await move('/srv/go/one', '/srv/go/two')
    expect(await facts('/srv/go/two')).toMatchObject({ type: 'link', target: '/etc/passwd' })
    expect(await names('/srv/go')).toEqual(['two'])
  })

  test('a directory is not moved into itself', async () => {
    await make('/srv/self/inner')
    expect(await kindOf(move('/srv/self', '/srv/self/inner/self'))).toBe('file_refused')
  })

  test('a file of 100 MB comes through without being kept', async () => {
    const bytes = 100 * MB
    const piece = randomBytes(MB)
    const pieces = async function* () {
      for (let at = 0; at < bytes; at += MB) yield piece
    }
    const before = process.memoryUsage().rss
    expect(await receive('/srv/large', pieces())).toMatchObject({ bytes, verified: true })
    let sent = 0
    await suite.engine().sendFile(
      machine(),
      '/srv/large',
      () => {},
      (data) => void (sent += data.length),
      never,
    )
    expect(sent).toBe(bytes)
    expect(process.memoryUsage().rss - before).toBeLessThan(80 * MB)
  })

  test('names with line breaks, slashes in a row and spaces are listed as they are', async () => {
    await suite.sh(machine(), `mkdir -p '/srv/odd/a b/c\nd' && touch '/srv/odd/a b/c\nd/ 81a4 1 2 3 4'`)
    expect(await names('/srv/odd', 3)).toEqual(['a b', 'a b/c\nd', 'a b/c\nd/ 81a4 1 2 3 4'])
  })

  test('accounts that are a pipe or too long to read do not hold a call up', async () => {
    await suite.sh(machine(), 'cp /etc/passwd /tmp/kept && rm /etc/passwd && mkfifo /etc/passwd')
    expect(await facts('/etc')).toMatchObject({ uid: 0, owner: null })
    await suite.sh(machine(), 'rm /etc/passwd && yes : | head -c 3000000 > /etc/passwd')
    expect(await kindOf(write('/srv/none', 'x', { user: 'games' }))).toBe('unknown_user')
    await suite.sh(machine(), 'cp /tmp/kept /etc/passwd')
  })
}
