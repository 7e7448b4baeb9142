// What goes on with a suspended run and what ends with it: programs of another user, commands, processes and terminals.

import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { MachineRef, RunSpec } from '../../../src/engine/engine.ts'
import type { TerminalInput } from '../../../src/engine/terminal.ts'
import { savesOtherUsers } from '../../support/memory-kept.ts'
import { deriveImage } from '../../support/derived-images.ts'
import { IMAGE, IMAGES_DIR } from '../host-engine.ts'
import { eventually, kindOf, type Suite } from '../suite.ts'

/** Prints a number, which it has in memory alone, whenever it is sent a signal. */
const counter = [
  'perl',
  '-e',
  '$| = 1; my $n = 0; $SIG{USR1} = sub { print ++$n, " as $> \\n" }; print "up\\n"; sleep 9 while 1',
]
const never = new AbortController().signal

/** For engines that support memory checkpoints. */
export function memoryCommandClaims(suite: Suite): void {
  const engine = suite.engine
  const counting = async (overrides = {}): Promise<MachineRef> => {
    const ref = await suite.running({ entrypoint: counter, cmd: [] }, overrides)
    await suite.logged(ref.id, 1)
    return ref
  }
  const next = async (ref: MachineRef): Promise<{ ref: MachineRef; resumed: boolean }> => {
    const again = { id: ref.id, generation: ref.generation + 1 }
    const run: RunSpec = {
      hostname: 'unit',
      entrypoint: counter,
      cmd: [],
      env: {},
      files: [],
      searchDomain: 'stack.internal',
      egress: null,
    }
    const { resumed } = await engine().start(again, run)
    return { ref: again, resumed }
  }
  const counts = async (ref: MachineRef, count: number) => {
    await suite.sh(ref, 'kill -USR1 1')
    return (await suite.logged(ref.id, 1 + count)).at(-1)?.text
  }
  const runs = async (ref: MachineRef, pattern: string) =>
    Number((await suite.sh(ref, `cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "${pattern}"`)).stdout)

  test.skipIf(!savesOtherUsers[suite.options.isolation])(
    'a program of another user than root goes on as that user',
    async () => {
      const configured = { reference: 'berth.local/of-a-user:1', config: { user: '1:1' } }
      const imageDigest = await deriveImage(engine(), [IMAGES_DIR, IMAGE], configured)
      const ref = await counting({ imageDigest })
      expect(await counts(ref, 1)).toBe('1 as 1 ')
      expect(await engine().suspend(ref, 1000)).toBe(true)
      const again = await next(ref)
      expect(again.resumed).toBe(true)
      expect(await counts(again.ref, 2)).toBe('2 as 1 ')
      expect((await suite.sh(again.ref, 'id -u')).stdout).toBe('1\n')
    },
  )

  test('a terminal ends with a suspended run, with what runs in it', async () => {
    const ref = await counting()
    let shown = ''
    const typed = Promise.withResolvers<TerminalInput>()
    async function* typing() {
      yield await typed.promise
      await new Promise(() => {})
    }
    const asked = { argv: ['sh'], size: { columns: 80, rows: 24 }, timeoutMs: 60_000, env: {} }
    const ended = kindOf(
      engine().terminal(ref, asked, typing(), ({ data }) => void (shown += data.toString('latin1')), never),
    )
    typed.resolve({ kind: 'bytes', data: Buffer.from("echo u''p; sleep 541\r") })
    await eventually(async () => shown.includes('up\r\n') || null)
    expect(await engine().suspend(ref, 0)).toBe(true)
    expect(await ended).toBe('run_ended')
    const again = await next(ref)
    expect(again.resumed).toBe(true)
    expect(await runs(again.ref, 'sleep 54[1]')).toBe(0)
    expect(await counts(again.ref, 1)).toBe('1 as 0 ')
  })

  test('a process that a call started ends with a suspended run and is listed as lost', async () => {
    const ref = await counting()
    const id = `process_${randomBytes(6).toString('hex')}`
    const argv = ['sleep', '542']
    await engine().startProcess(ref, {
      id,
      argv,
      shown: argv,
      env: {},
      cwd: null,
      stdin: null,
      keepsAwake: false,
    })
    expect(await engine().suspend(ref, 0)).toBe(true)
    const again = await next(ref)
    expect(again.resumed).toBe(true)
    const found = (await engine().processes(ref.id)).find((process) => process.id === id)
    expect(found).toMatchObject({ state: 'lost' })
    expect(await runs(again.ref, 'sleep 54[2]')).toBe(0)
  })

  test('a running command ends with a suspended run and does not exist in the next', async () => {
    const ref = await counting()
    const argv = ['bash', '-c', 'echo up > /root/up; sleep 543']
    const command = kindOf(suite.exec(ref, argv, { timeoutMs: 60_000 }))
    await eventually(async () => ((await suite.sh(ref, 'test -s /root/up')).exitCode === 0 ? true : null))
    const kept = await engine().suspend(ref, 0)
    expect(await command).toBe('run_ended')
    const again = await next(ref)
    expect(again.resumed).toBe(kept)
    expect(await runs(again.ref, 'sleep 54[3]')).toBe(0)
  })
}
