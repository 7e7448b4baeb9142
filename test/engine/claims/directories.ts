// Directories of a machine: listing, removing, and reading and writing as an archive.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { limits } from '../../../src/contract/limits.ts'
import { eventually, kindOf, type Suite } from '../suite.ts'

const MB = 1024 * 1024

function toolsOf(suite: Suite, machine: ReturnType<Suite['shared']>) {
  const never = new AbortController().signal
  return {
    never,
    write: async (path: string, content: Buffer | string) =>
      await suite.engine().writeFile(machine(), path, Buffer.from(content)),
    list: async (path: string) => await suite.engine().listDirectory(machine(), path),
    names: async (path: string) =>
      (await suite.engine().listDirectory(machine(), path)).entries.map(({ name }) => name),
    remove: async (path: string, recursive = false) =>
      await suite.engine().removeFile(machine(), path, recursive),
    pack: async (path: string) => {
      const pieces: Buffer[] = []
      await suite.engine().readArchive(machine(), path, (piece) => void pieces.push(piece), never)
      return Buffer.concat(pieces)
    },
    unpack: async (path: string, archive: Buffer, signal = never, keep = false) =>
      await suite.engine().writeArchive(machine(), path, inPieces(archive), signal, keep),
  }
}

async function* inPieces(content: Buffer, bytes = 50_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += bytes) yield content.subarray(at, at + bytes)
}

/** Of every engine. */
export function directoryClaims(suite: Suite): void {
  const machine = suite.shared()
  const { never, write, list, names, remove, pack, unpack } = toolsOf(suite, machine)

  test('a directory is listed by name, with the type and size of each entry', async () => {
    await write('/srv/listed/b', 'four')
    await write('/srv/listed/a b', '')
    await write('/srv/listed/c/deep', 'x')
    const { entries, truncated } = await list('/srv/listed')
    expect(entries).toMatchObject([
      { name: 'a b', type: 'file', bytes: 0 },
      { name: 'b', type: 'file', bytes: 4 },
      { name: 'c', type: 'directory' },
    ])
    expect(truncated).toBe(false)
    expect(Math.abs((entries[0]?.modifiedAt.getTime() ?? 0) - Date.now())).toBeLessThan(600_000)
    expect(await names('/')).toContain('etc')
  })

  test('listing anything but a directory is an error', async () => {
    await write('/tmp/plain', 'x')
    expect(await kindOf(list('/tmp/plain'))).toBe('not_a_directory')
    expect(await kindOf(list('/no/such'))).toBe('file_not_found')
    for (const path of ['', 'relative', '/tmp/', '/tmp/../etc', '/nul\0byte'])
      expect([path, await kindOf(list(path))]).toEqual([path, 'bad_path'])
  })

  test('a file is removed, and a directory with content only if recursive is set', async () => {
    await write('/srv/going/a', 'x')
    await write('/srv/going/b/c', 'x')
    await remove('/srv/going/a')
    expect(await names('/srv/going')).toEqual(['b'])
    expect(await kindOf(remove('/srv/going'))).toBe('directory_not_empty')
    await remove('/srv/going', true)
    expect(await kindOf(list('/srv/going'))).toBe('file_not_found')
    expect(await kindOf(remove('/srv/going', true))).toBe('file_not_found')
    for (const path of ['', '/', '/tmp/', '/tmp/../etc'])
      expect([path, await kindOf(remove(path, true))]).toEqual([path, 'bad_path'])
  })

  test('a directory can be read as an archive and unpacked into another directory', async () => {
    const content = Buffer.from(Array.from({ length: 3 * MB }, (_, i) => (i * 7919) % 256))
    await write('/srv/from/a', 'alpha')
    await write('/srv/from/b/c', content.subarray(0, MB))
    const archive = await pack('/srv/from')
    await unpack('/srv/to/new', archive)
    expect(await names('/srv/to/new')).toEqual(['a', 'b'])
    const read = await suite.engine().readFile(machine(), '/srv/to/new/b/c', MB)
    expect(read.content.equals(content.subarray(0, MB))).toBe(true)
    await unpack('/srv/to/one', await pack('/srv/from/a'))
    expect(await names('/srv/to/one')).toEqual(['a'])
  })

  test('an invalid or truncated archive is refused', async () => {
    await write('/srv/whole/a', Buffer.alloc(100_000, 1))
    const archive = await pack('/srv/whole')
    for (const bad of [
      Buffer.alloc(0),
      Buffer.from('hello'),
      Buffer.alloc(2000, 65),
      archive.subarray(0, 50_000),
    ])
      expect([bad.length, await kindOf(unpack('/srv/bad', bad))]).toEqual([bad.length, 'not_an_archive'])
    await write('/srv/plain', 'x')
    expect(await kindOf(unpack('/srv/plain', archive))).toBe('not_a_directory')
    expect(await kindOf(pack('/no/such'))).toBe('file_not_found')
    expect(await kindOf(pack('/srv/../etc'))).toBe('bad_path')
    expect(await kindOf(unpack('/srv/../etc', archive))).toBe('bad_path')
  })

  test('a caller that aborts ends the archive in either direction with its own error', async () => {
    await write('/srv/large/a', Buffer.alloc(MB, 1))
    const archive = await pack('/srv/large')
    const broken = async function* () {
      yield archive.subarray(0, 1000)
      throw new Error('the sender broke off')
    }
    const sending = suite.engine().writeArchive(machine(), '/srv/half', broken(), never)
    await expect(sending).rejects.toThrow('the sender broke off')
    const left = new AbortController()
    const stuck = async function* () {
      yield archive.subarray(0, 1000)
      left.abort(new Error('the caller left'))
      await new Promise<never>(() => {})
    }
    const waiting = suite.engine().writeArchive(machine(), '/srv/half', stuck(), left.signal)
    await expect(waiting).rejects.toThrow('the caller left')
    const failing = suite.engine().readArchive(
      machine(),
      '/srv/large',
      () => {
        throw new Error('the reader failed')
      },
      never,
    )
    await expect(failing).rejects.toThrow('the reader failed')
  })

  test('directory operations on a stopped or frozen machine are refused', async () => {
    const ref = await suite.running()
    const each = () => [
      suite.engine().listDirectory(ref, '/tmp'),
      suite.engine().removeFile(ref, '/tmp/a', false),
      suite.engine().readArchive(ref, '/etc', () => {}, never),
      suite.engine().writeArchive(ref, '/tmp', inPieces(Buffer.alloc(1024)), never),
    ]
    await suite.engine().freeze(ref)
    for (const call of each()) expect(await kindOf(call)).toBe('frozen')
    await suite.engine().stop(ref, 0)
    for (const call of each()) expect(await kindOf(call)).toBe('not_running')
  })
}

/** Of engines whose machines have a file system and a shell of their own. */
export function hostileDirectoryClaims(suite: Suite): void {
  const machine = suite.shared()
  const { list, names, remove, pack, unpack, never } = toolsOf(suite, machine)
  const sh = async (script: string) => await suite.sh(machine(), script, { timeoutMs: 60_000 })

  test('names with newlines, dashes, quotes and invalid UTF-8 are listed correctly', async () => {
    const names = `-rf '*' "it's" 'two\n81a4 0 0' "$(printf 'b\\377')" ${'n'.repeat(255)}`
    const made = await sh(
      `mkdir /tmp/odd; cd /tmp/odd; touch -- ${names}; ln -s /etc ln; mkfifo fifo; mkdir .hidden`,
    )
    expect(made).toMatchObject({ exitCode: 0 })
    const { entries } = await list('/tmp/odd')
    expect(entries.map(({ name, type }) => [name, type])).toEqual(
      [
        ['*', 'file'],
        ['-rf', 'file'],
        ['.hidden', 'directory'],
        ['b\udcff', 'file'],
        ['fifo', 'other'],
        ["it's", 'file'],
        ['ln', 'link'],
        ['n'.repeat(255), 'file'],
        ['two\n81a4 0 0', 'file'],
      ].toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1)),
    )
  })

  suite.long('the listing of a very large directory is truncated and says so', async () => {
    await sh(`mkdir /tmp/many; cd /tmp/many; seq -f file-%g 1 ${limits.directoryEntries + 100} | xargs touch`)
    const { entries, truncated } = await list('/tmp/many')
    expect([entries.length, truncated]).toEqual([limits.directoryEntries, true])
    await remove('/tmp/many', true)
    expect(await names('/tmp')).not.toContain('many')
  })

  test('removing deletes a link but not its target, and kernel files cannot be removed', async () => {
    await sh(
      'mkdir /srv/kept; touch /srv/kept/a; ln -s /srv/kept /tmp/led; mkdir /tmp/t; ln -s /srv/kept /tmp/t/l',
    )
    await remove('/tmp/led')
    await remove('/tmp/t', true)
    expect(await names('/srv/kept')).toEqual(['a'])
    for (const path of ['/proc/1/status', '/sys/kernel', '/proc/sys'])
      expect([path, await kindOf(remove(path, true))]).toEqual([path, 'file_refused'])
    expect((await sh('true')).exitCode).toBe(0)
  })

  test('an archive keeps modes and links, omits sockets, and can be read by GNU tar', async () => {
    await sh(`mkdir -p /srv/kinds/d; cd /srv/kinds; echo hi > run; chmod 750 run; ln -s run soft; ln run hard; mkfifo fifo
printf x > "$(printf 'odd\\nname')"; dd if=/dev/zero of=sparse bs=1 count=1 seek=5000000 2>/dev/null`)
    const directory = await mkdtemp(join(tmpdir(), 'berth-tar-'))
    onTestFinished(async () => await rm(directory, { recursive: true }))
    await writeFile(join(directory, 'a.tar'), await pack('/srv/kinds'))
    const { stdout } = await promisify(execFile)('tar', ['-tvf', join(directory, 'a.tar')])
    for (const part of ['-rwxr-x---', './soft -> run', 'sparse', './d/', 'odd\\nname'])
      expect(stdout).toContain(part)
  })

  test('an archive that keeps what exists writes in place: mode, owner and links stay', async () => {
    await sh(`mkdir -p /srv/new/d /srv/old; cd /srv/new; echo new | tee run through dangling > d/fresh; chmod 751 run; chmod 600 d/fresh
cd ../old; echo old | tee run > target; chmod 604 run target; chown 33:44 run; ln -s target through; ln -s nowhere dangling`)
    await unpack('/srv/old', await pack('/srv/new'), never, true)
    const { stdout } = await sh(
      `cd /srv/old; stat -c '%n %F %a %u:%g' run target through nowhere d/fresh; cat target nowhere`,
    )
    expect(stdout).toBe(`run regular file 604 33:44
target regular file 604 0:0
through symbolic link 777 0:0
nowhere regular file 644 0:0
d/fresh regular file 600 0:0
new
new
`)
  })

  test('no entry of an archive is written outside its directory, and unpacked files belong to root', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-tar-'))
    onTestFinished(async () => await rm(directory, { recursive: true }))
    const script = `
import tarfile, io, sys
t = tarfile.open(sys.argv[1], 'w')
def add(name, type=tarfile.REGTYPE, link='', data=b'planted'):
    i = tarfile.TarInfo(name); i.type = type; i.linkname = link; i.uid = i.gid = 1000; i.mode = 0o755
    i.devmajor, i.devminor = 1, 3
    i.size = len(data) if type == tarfile.REGTYPE else 0
    t.addfile(i, io.BytesIO(data) if i.size else None)
add('fine/a')
add('../../../../srv/climbed')
add('x/../../../srv/climbed')
add('/srv/absolute')
add('led', tarfile.SYMTYPE, '/srv/outside'); add('led/through')
add('up', tarfile.SYMTYPE, '../../srv/outside'); add('up/through')
t.close()`
    await promisify(execFile)('python3', ['-c', script, join(directory, 'evil.tar')])
    await sh('mkdir -p /srv/outside /tmp/in/box')
    await unpack('/tmp/in/box', await readFile(join(directory, 'evil.tar'))).catch(() => {})
    expect((await sh('ls -A /srv/outside; ls /srv/climbed /srv/absolute 2>/dev/null')).stdout).toBe('')
    expect((await sh('cat /tmp/in/box/fine/a; stat -c %u:%g /tmp/in/box/fine/a')).stdout).toBe('planted0:0\n')
    expect(await names('/tmp/in')).toEqual(['box'])
  })

  test('kernel files and devices cannot be archived, but the root directory can', async () => {
    await sh('ln -s /proc /tmp/led-to-proc')
    for (const path of ['/proc', '/sys/kernel', '/dev', '/tmp/led-to-proc', '/dev/null'])
      expect([path, await kindOf(pack(path))]).toEqual([path, 'not_a_file'])
    const left = new AbortController()
    const seen: Buffer[] = []
    const reading = suite.engine().readArchive(
      machine(),
      '/',
      (piece) => {
        seen.push(piece)
        if (seen.length > 20) left.abort(new Error('seen enough'))
      },
      left.signal,
    )
    await reading.catch(() => {})
    expect(seen.length).toBeGreaterThan(20)
  })

  suite.long(
    'an archive that fills the disk fails with disk_full, and an aborted one leaves no process',
    async () => {
      const full = await suite.running()
      const block = Buffer.alloc(MB, 7)
      const header = Buffer.alloc(512)
      const endless = async function* () {
        header.write('./endless', 0)
        header.write(
          '0000644\u00000000000\u00000000000\u000017777777777\u000000000000000\u0000        0',
          100,
          'latin1',
        )
        header.write('ustar\u000000', 257, 'latin1')
        const sum = header.reduce((total, byte) => total + byte, 0)
        header.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148, 'latin1')
        yield header
        for (let sent = 0; sent < 1900; sent += 1) yield block
      }
      expect(await kindOf(suite.engine().writeArchive(full, '/srv', endless(), never))).toBe('disk_full')
      const left = new AbortController()
      const stuck = async function* () {
        yield header
        await new Promise<never>(() => {})
      }
      const leaving = suite.engine().writeArchive(machine(), '/srv/left', stuck(), left.signal)
      await eventually(async () =>
        (await sh('cat /proc/[0-9]*/cmdline')).stdout.includes('tar\0-x') ? true : null,
      )
      left.abort(new Error('the caller left'))
      await expect(leaving).rejects.toThrow('the caller left')
      await eventually(async () =>
        (await sh('cat /proc/[0-9]*/cmdline')).stdout.includes('tar\0-x') ? null : true,
      )
    },
  )
}
