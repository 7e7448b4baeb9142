import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { MachineRef } from '../../../src/engine/engine.ts'
import { eventually, type Suite } from '../suite.ts'

/** Where a unit keeps things: its root, its volume, and where everybody puts what they do not think about. */
export const places = ['/root/kept', '/data/kept', '/tmp/kept']

/** setxattr and getxattr, for which the image has no program. */
const xattr = process.arch === 'arm64' ? { set: 5, get: 8 } : { set: 188, get: 191 }

/** A tree with one of everything a disk can hold, its times set to the nanosecond. */
export const plant = `
set -eu; umask 022; mkdir -p "$0"; cd "$0"
mkdir -p 'a dir' deep/er/still; chmod 0700 'a dir'; chmod 1777 deep
echo plain > plain; : > empty; head -c 3000001 /dev/urandom > large
echo one > 'ünïcode ✓'; echo two > "$(printf 'new\\nline')"; echo three > "it's \\"quoted\\""; echo four > ' spaces '
echo private > private; chmod 0600 private; echo run > run; chmod 0755 run
echo owned > owned; chown 1234:2345 owned
ln plain 'a dir/hard'; ln -s plain soft; ln -s /nowhere dangling; ln -s ../plain 'a dir/up'
truncate -s 4M sparse; echo end >> sparse
perl -e '($f, $n, $v) = qw(plain user.note value); syscall(${xattr.set}, $f, $n, $v, 5, 0) or open F, ">has-xattr"'
find . -depth -exec touch -h -d @1000000000.123456789 {} +`

/** Everything about the tree that must never change, as lines. */
export const survey = `
set -eu; cd "$0"
find . ! -type d -printf '%y %m %U %G %n %s %T@ %P -> %l\\n' | sort
find . -type d -printf 'd %m %U %G %T@ %P\\n' | sort
find . -type f -print0 | sort -z | xargs -0 sha256sum
[ plain -ef 'a dir/hard' ] && echo one file
[ ! -e has-xattr ] || perl -e '($f, $n) = qw(plain user.note); $v = " " x 9; print substr($v, 0, syscall(${xattr.get}, $f, $n, $v, 9))'`

export function storageClaims(suite: Suite): void {
  const engine = suite.engine
  const on = async (ref: MachineRef, script: string) => {
    const results = await Promise.all(places.map((place) => suite.exec(ref, ['sh', '-c', script, place])))
    for (const { exitCode, stderr } of results) expect(`${exitCode} ${stderr}`).toBe('0 ')
    return results.map(({ stdout }) => stdout)
  }

  /** Ways in which a run comes to its end and the next one begins. */
  const cycles: [string, (ref: MachineRef) => Promise<unknown>][] = [
    ['a stop with grace', async (ref) => await engine().stop(ref, 5000)],
    ['a stop without grace', async (ref) => await engine().stop(ref, 0)],
    ['a start over it', async () => {}],
    [
      'a stop of it frozen',
      async (ref) =>
        await engine()
          .freeze(ref)
          .then(() => engine().stop(ref, 0)),
    ],
    ['an end of its own', async (ref) => await suite.sh(ref, 'kill -9 -1; kill -TERM 1').catch(() => {})],
    ['an engine that came anew', async (ref) => await suite.reopen().then(() => engine().stop(ref, 0))],
  ]

  suite.long(
    'a disk keeps every byte, name, mode, owner, link, attribute and time over six kinds of stop',
    async () => {
      let ref = await suite.running({}, { volume: { mount: '/data', gb: 1 } })
      await on(ref, plant)
      const before = await on(ref, survey)
      for (const lines of before) expect(lines.split('\n').length).toBeGreaterThan(30)
      // gVisor refuses extended attributes: what was never taken cannot be lost.
      if (suite.options.isolation === 'runc') for (const lines of before) expect(lines).toMatch(/\nvalue$/)
      for (const [kind, end] of cycles) {
        await end(ref)
        ref = await suite.start({ id: ref.id, generation: ref.generation + 1 })
        expect([kind, ...(await on(ref, survey))]).toEqual([kind, ...before])
      }
    },
  )

  // Reliability F11.
  test('data that was written but not synced survives a kill', async () => {
    let ref = await suite.running({}, { volume: { mount: '/data', gb: 1 } })
    const content = (round: number) => `${round}\n`.repeat(200_001).slice(0, 300_001)
    for (let round = 1; round <= 3; round += 1) {
      await on(ref, `mkdir -p "$0"; yes ${round} | head -c 300001 > "$0/${round}"; echo ${round} >> "$0/log"`)
      await engine().stop(ref, 0)
      ref = await suite.start({ id: ref.id, generation: round + 1 })
      const hash = createHash('sha256').update(content(round)).digest('hex')
      for (const said of await on(ref, `sha256sum < "$0/${round}"; wc -l < "$0/log"`)) {
        expect(said.split(/\s+/)).toEqual([hash, '-', `${round}`, ''])
      }
    }
  })

  test('a line written to a file before it was logged is never lost by a kill', async () => {
    const script =
      'i=0; while :; do i=$((i+1)); for f in /root/log /data/log /tmp/log; do echo $i >> $f; done; echo $i; done'
    const writing = { entrypoint: ['bash', '-c', script], cmd: [] }
    const ref = await suite.running(writing, { volume: { mount: '/data', gb: 1 } })
    await suite.logged(ref.id, 50)
    await engine().stop(ref, 0)
    const [last] = await eventually(async () => {
      const lines = await engine().logs(ref.id, { after: null, since: null, limit: 1 })
      return lines.length > 0 ? lines : null
    })
    const again = await suite.start({ id: ref.id, generation: 2 })
    for (const file of ['/root/log', '/data/log', '/tmp/log']) {
      const kept = Number((await suite.sh(again, `tail -n 1 ${file}`)).stdout)
      expect(kept).toBeGreaterThanOrEqual(Number(last?.text))
    }
  })
}
