// What changes in a directory of a machine is told, and what was lost is told too.

import { expect, onTestFinished, test } from 'vitest'
import type { FileChange } from '../../../src/engine/engine.ts'
import { kindOf, type Suite } from '../suite.ts'

/** Of an engine with a kernel. */
export function watchingClaims(suite: Suite): void {
  const machine = suite.shared()
  const sh = async (script: string) => await suite.sh(machine(), script)

  async function watch(path: string, recursive = false, onChanges: () => Promise<void> = async () => {}) {
    const all: FileChange[] = []
    const ending = new AbortController()
    const begun = Promise.withResolvers<void>()
    const told = {
      onBegun: begun.resolve,
      onChanges: async (changes: FileChange[]) => {
        await onChanges()
        all.push(...changes)
      },
    }
    const ended = suite.engine().watchFiles(machine(), path, recursive, told, ending.signal)
    ended.catch(() => {})
    onTestFinished(() => ending.abort(new Error('the test is over')))
    await Promise.race([begun.promise, ended])
    const lines = () =>
      all.map((change) =>
        change.type === 'overflow' ? `overflow ${change.lost}` : `${change.type} ${change.path}`,
      )
    return { all, lines, ended, ending }
  }

  test('what is made, written, changed, renamed and removed in a directory is told in its order', async () => {
    await sh('mkdir -p /srv/seen')
    const { lines, all } = await watch('/srv/seen')
    await sh(
      'cd /srv/seen && : > a && echo x >> a && chmod 600 a && mv a b && rm b && mkdir d && : > d/unseen',
    )
    await expect.poll(lines).toContain('create d')
    expect(lines()).toEqual([
      'create a',
      'write a',
      'chmod a',
      'rename a',
      'create b',
      'remove b',
      'create d',
    ])
    expect(all.at(-1)).toMatchObject({ isDirectory: true })
  })

  test('changes below the directory are told where that is asked for, also in what is new and what was moved', async () => {
    await sh('mkdir -p /srv/tree/old/deep')
    const { lines } = await watch('/srv/tree', true)
    await sh('cd /srv/tree && : > old/deep/one && mkdir -p new/a/b && : > new/a/b/two')
    // What is moved before it could be watched is told where it has gone.
    await expect.poll(lines).toContain('create new/a/b/two')
    await sh('cd /srv/tree && mv new moved && : > moved/a/b/three && rm -r old')
    await expect
      .poll(lines)
      .toEqual(
        expect.arrayContaining([
          'create old/deep/one',
          'create new/a/b/two',
          'rename new',
          'create moved',
          'create moved/a/b/three',
          'remove old/deep/one',
          'remove old',
        ]),
      )
  })

  test('what is moved out of the directory is told no more', async () => {
    await sh('mkdir -p /srv/out/tree/inner /srv/elsewhere')
    const { lines } = await watch('/srv/out', true)
    await sh('mv /srv/out/tree /srv/elsewhere/tree')
    await expect.poll(lines).toEqual(['rename tree'])
    await sh(': > /srv/elsewhere/tree/inner/file; : > /srv/out/last')
    await expect.poll(lines).toEqual(['rename tree', 'create last'])
  })

  test('names that are not UTF-8 or have line breaks are told as they are', async () => {
    await sh('mkdir -p /srv/names')
    const { lines } = await watch('/srv/names')
    await sh(`cd /srv/names && : > 'a\nb' && : > "$(printf '\\377')"`)
    await expect.poll(() => lines().filter((line) => line.startsWith('create'))).toHaveLength(2)
    expect(lines()).toContain('create a\nb')
    expect(lines().some((line) => !line.isWellFormed())).toBe(true)
  })

  test('a watch ends when its directory is removed, and what is no directory cannot be watched', async () => {
    await sh('mkdir -p /srv/gone')
    const { ended, lines } = await watch('/srv/gone')
    await sh('rm -r /srv/gone')
    await ended
    expect(lines()).toEqual(['remove '])
    const told = { onBegun: () => {}, onChanges: () => {} }
    const never = new AbortController().signal
    const of = async (path: string) =>
      await kindOf(suite.engine().watchFiles(machine(), path, false, told, never))
    expect([await of('/srv/gone'), await of('/etc/passwd')]).toEqual(['file_not_found', 'not_a_directory'])
  })

  test('ten thousand files that are made while a reader keeps up are each told', async () => {
    await sh('mkdir -p /srv/many')
    const { all, lines } = await watch('/srv/many', true)
    await sh('cd /srv/many && i=0; while [ $i -lt 10000 ]; do : > f$i; i=$((i+1)); done')
    await sh(': > /srv/many/last')
    await expect.poll(() => lines().includes('create last'), { timeout: 60_000 }).toBe(true)
    const made = new Set(all.flatMap((change) => (change.type === 'create' ? [change.path] : [])))
    if (!lines().some((line) => line.startsWith('overflow'))) expect(made.size).toBe(10_001)
  })

  suite.long('changes that a reader is too slow for are lost, and that they were is told', async () => {
    await sh('mkdir -p /srv/slow')
    const waiting = Promise.withResolvers<void>()
    const { lines } = await watch('/srv/slow', true, async () => await waiting.promise)
    // More than a kernel keeps, and than is on its way.
    const rounds =
      'for n in 1 2 3 4 5 6; do i=0; while [ $i -lt 4000 ]; do : > f$i; i=$((i+1)); done; rm -f f*; done'
    for (let times = 0; times < 3; times += 1) await sh(`cd /srv/slow && ${rounds}`)
    waiting.resolve()
    await expect.poll(lines, { timeout: 60_000 }).toContain('overflow changes')
    await sh('mkdir /srv/slow/later && : > /srv/slow/later/file')
    await expect.poll(lines, { timeout: 60_000 }).toContain('create later/file')
  })

  test('a watch that is given up leaves no process behind', async () => {
    await sh('mkdir -p /srv/left')
    const { ended, ending } = await watch('/srv/left')
    const watchers = async () => (await sh('cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n"')).stdout
    expect(await watchers()).toContain('/srv/left')
    ending.abort(new Error('enough'))
    await expect(ended).rejects.toThrow('enough')
    await expect.poll(watchers).not.toContain('/srv/left')
  })
}
