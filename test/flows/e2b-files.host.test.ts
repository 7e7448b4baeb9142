// Files and git of sandboxes, by the official client, on real units.

import { FileNotFoundError, FileType, InvalidArgumentError, type Sandbox } from 'e2b'
import { beforeAll, describe, expect, it } from 'vitest'
import { createSandbox } from '../support/e2b.ts'
import { isDeep, usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth(null)

describe.each(usualClasses)('with %s, the files of a sandbox', (isolation) => {
  let sandbox: Sandbox
  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
    sandbox = await createSandbox(berth)
  })

  it('are written in the home of the user and belong to it, with the folders above', async () => {
    const { files, commands } = sandbox
    expect(await files.write('notes/today.txt', 'hello')).toMatchObject({
      name: 'today.txt',
      path: '/home/user/notes/today.txt',
      type: 'file',
    })
    expect(await files.read('notes/today.txt')).toBe('hello')
    expect((await commands.run('stat -c "%U %a" notes notes/today.txt')).stdout).toBe('user 755\nuser 644\n')
  })

  it('are written several at once, as text and bytes, and read in every format', async () => {
    const { files } = sandbox
    const written = await files.write([
      { path: 'one', data: 'eins' },
      { path: '/tmp/two', data: new Blob(['zwei']) },
      { path: 'empty', data: '' },
    ])
    expect(written.map(({ path }) => path)).toEqual(['/home/user/one', '/tmp/two', '/home/user/empty'])
    expect(await files.read('one', { format: 'bytes' })).toEqual(new TextEncoder().encode('eins'))
    expect(await (await files.read('/tmp/two', { format: 'blob' })).text()).toBe('zwei')
    expect(await files.read('empty')).toBe('')
    const more = [{ path: 'ordner/größe 📦', data: 'drei' }]
    expect(await files.writeFiles(more)).toMatchObject([{ path: '/home/user/ordner/größe 📦' }])
    expect(await files.read('ordner/größe 📦')).toBe('drei')
    await expect(files.write('', 'x')).rejects.toThrow(InvalidArgumentError)
  })

  it('of twenty megabytes pass as streams, and compressed ones are unpacked', async () => {
    const { files } = sandbox
    await files.write('large', new Blob([new Uint8Array(20_000_000).fill(7)]).stream())
    let read = 0
    for await (const piece of await files.read('large', { format: 'stream' })) read += piece.length
    expect(read).toBe(20_000_000)
    await files.write('packed', 'g'.repeat(100_000), { gzip: true })
    expect(await files.read('packed')).toHaveLength(100_000)
  })

  it('that are not there, or are no files, are refused by the errors of the client', async () => {
    const { files, commands } = sandbox
    await expect(files.read('nothing')).rejects.toThrow(FileNotFoundError)
    await expect(files.read('/tmp')).rejects.toThrow(InvalidArgumentError)
    await expect(files.list('nothing')).rejects.toThrow(FileNotFoundError)
    await expect(files.rename('nothing', 'else')).rejects.toThrow(FileNotFoundError)
    await commands.run(`mkdir -p deep/${'d/'.repeat(40)}`)
    expect(await files.list('deep', { depth: 32 })).toHaveLength(32)
    await expect(files.list('deep', { depth: 100 })).rejects.toThrow(InvalidArgumentError)
    expect(await files.list(`deep/${'d/'.repeat(20)}`, { depth: 100 })).toHaveLength(20)
    expect(await files.exists('nothing')).toBe(false)
    await files.remove('nothing')
  })

  it('are listed with their owners, modes and sizes, also those further down', async () => {
    const { files } = sandbox
    await files.makeDir('tree/branch')
    expect(await files.makeDir('tree/branch')).toBe(false)
    await files.write('tree/branch/leaf', 'leaf')
    const [entry] = await files.list('tree')
    expect(entry).toMatchObject({
      name: 'branch',
      type: FileType.DIR,
      owner: 'user',
      group: 'user',
      permissions: 'drwxr-xr-x',
    })
    expect((await files.list('tree', { depth: 2 })).map(({ path }) => path)).toEqual([
      '/home/user/tree/branch',
      '/home/user/tree/branch/leaf',
    ])
    expect(await files.getInfo('tree/branch/leaf')).toMatchObject({
      type: FileType.FILE,
      size: 4,
      mode: 0o644,
    })
  })

  it('are moved, removed, and shown through links', async () => {
    const { files, commands } = sandbox
    await files.write('from', 'moved')
    expect(await files.rename('from', 'sub/to')).toMatchObject({ path: '/home/user/sub/to', size: 5 })
    await commands.run('ln -s sub/to link; ln -s link again; ln -s nowhere broken')
    for (const link of ['link', 'again'])
      expect(await files.getInfo(link)).toMatchObject({
        type: FileType.FILE,
        symlinkTarget: '/home/user/sub/to',
      })
    expect(await files.getInfo('broken')).toMatchObject({ type: FileType.SYMLINK })
    await files.remove('sub')
    expect(await files.exists('sub/to')).toBe(false)
  })

  it('are watched, with what is below and what they are', async () => {
    const { files } = sandbox
    await files.makeDir('watched/below')
    const seen: string[] = []
    const watching = await files.watchDir(
      'watched',
      ({ type, name, entry }) => void seen.push(`${type} ${name} ${entry?.size}`),
      { recursive: true, includeEntry: true },
    )
    await files.write('watched/below/file', 'four')
    await expect.poll(() => seen).toContain('create below/file 4')
    await files.rename('watched/below/file', 'watched/moved')
    await files.remove('watched/moved')
    await expect.poll(() => seen).toContain('remove moved undefined')
    expect(seen).toEqual(expect.arrayContaining(['write below/file 4', 'rename below/file undefined']))
    await watching.stop()
    await expect(files.watchDir('nothing', () => {})).rejects.toThrow(FileNotFoundError)
  })

  it.skipIf(!isDeep)(
    'are ten thousand in one folder: each is told as it comes, and all are listed',
    async () => {
      const { files, commands } = sandbox
      await files.makeDir('many')
      const seen = new Set<string>()
      const watching = await files.watchDir(
        'many',
        ({ type, name }) => void (type === 'create' && seen.add(name)),
      )
      await commands.run('cd many && seq -f f%g 10000 | xargs touch', { timeoutMs: 300_000 })
      await expect.poll(() => seen.size, { timeout: 60_000 }).toBe(10_000)
      await watching.stop()
      expect(await files.list('many', { requestTimeoutMs: 300_000 })).toHaveLength(10_000)
    },
  )

  it('keep what was said of them when they are moved, until they are written without', async () => {
    const { files } = sandbox
    const metadata = { author: 'Ann', purpose: 'a test' }
    expect(await files.write('noted/a', 'x', { metadata })).toMatchObject({ metadata })
    expect((await files.rename('noted/a', 'noted/b')).metadata).toEqual(metadata)
    expect((await files.list('noted')).map((each) => each.metadata)).toEqual([metadata])
    await files.write('noted/b', 'x')
    expect((await files.getInfo('noted/b')).metadata).toBeUndefined()
  })

  it('can be those of root', async () => {
    await sandbox.files.write('/root/kept', 'kept', { user: 'root' })
    expect(await sandbox.files.read('/root/kept', { user: 'root' })).toBe('kept')
  })

  it('are a repository of git', async () => {
    const { files, git } = sandbox
    const repository = '/home/user/repository'
    await git.init(repository, { initialBranch: 'main' })
    await files.write(`${repository}/file`, 'content')
    await git.add(repository)
    await git.commit(repository, 'First', { authorName: 'Agent', authorEmail: 'agent@example.test' })
    expect(await git.status(repository)).toMatchObject({ currentBranch: 'main', isClean: true })
    await git.createBranch(repository, 'other')
    const { branches } = await git.branches(repository)
    expect(branches.toSorted()).toEqual(['main', 'other'])
  })
})
