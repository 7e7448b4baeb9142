import { expect, test } from 'vitest'
import { limits } from '../../../src/contract/limits.ts'
import { eventually, type Suite } from '../suite.ts'
import { createBackground } from './background.ts'

const MB = 1024 * 1024

/** Needs real processes and pipes, and an engine that can be reopened. */
export function backgroundHostClaims(suite: Suite): void {
  const machine = suite.shared()
  const background = createBackground(suite)
  /** Whether a process that writes the time to `file` again and again is still doing so. */
  async function stillWrites(file: string): Promise<boolean> {
    const before = (await suite.sh(machine(), `cat ${file}`)).stdout
    await new Promise((resolve) => setTimeout(resolve, 500))
    return (await suite.sh(machine(), `cat ${file}`)).stdout !== before
  }
  const writer = (file: string) => `while :; do date +%s%N > ${file}; sleep 0.05; done`

  test('a background process starts in the given directory as the machine’s user with three descriptors', async () => {
    const { id, pid } = await background.sh(machine(), 'pwd; id -u; exec ls /proc/self/fd', {
      cwd: '/usr/share',
    })
    expect(pid).toBeGreaterThan(1)
    await background.over(machine(), id)
    const lines = (await background.output(machine(), id)).stdout.split('\n')
    expect(lines.slice(0, 2)).toEqual(['/usr/share', '0'])
    // The last is the directory's.
    expect(lines.slice(2, -1)).toEqual(['0', '1', '2', '3'])
    const own = await background.start(machine(), ['cat', '--version'])
    await background.over(machine(), own.id)
    expect((await background.output(machine(), own.id)).stdout).toContain('coreutils')
    const nowhere = await background.start(machine(), ['pwd'], { cwd: '/no/such' })
    expect(await background.over(machine(), nowhere.id)).toMatchObject({ exitCode: 126 })
    expect((await background.output(machine(), nowhere.id)).stderr).toContain('/no/such')
  })

  test('a background process gets its arguments unchanged: dashes, empty, newlines, 8192 bytes', async () => {
    const argv = ['-n', '--', '', 'two\nlines', `'"$HOME\``, '*', 'é✓', 'x'.repeat(8192)]
    const { id } = await background.start(machine(), ['printf', '%s\\n', ...argv])
    await background.over(machine(), id)
    expect(Buffer.from((await background.output(machine(), id)).stdout, 'latin1').toString()).toBe(
      argv.map((arg) => `${arg}\n`).join(''),
    )
  })

  test('a signal reaches the process group, and KILL also ends children in other sessions', async () => {
    const heeding = await background.start(machine(), [
      'bash',
      '-c',
      'trap "echo bye; exit 9" TERM; echo ready; while :; do sleep 0.1; done',
    ])
    await background.printed(machine(), heeding.id, 'ready')
    await suite.engine().signalProcess(machine(), heeding.id, 'TERM')
    expect(await background.over(machine(), heeding.id)).toMatchObject({ exitCode: 9 })
    expect((await background.output(machine(), heeding.id)).stdout).toBe('ready\nbye\n')

    const script = `(setsid sh -c '${writer('/tmp/far')}' >/dev/null 2>&1 &) ; (${writer('/tmp/near')}) & echo ready; wait`
    const tree = await background.start(machine(), ['bash', '-c', script])
    await background.printed(machine(), tree.id, 'ready')
    await eventually(async () => ((await stillWrites('/tmp/far')) ? true : null))
    await suite.engine().signalProcess(machine(), tree.id, 'KILL')
    expect(await background.over(machine(), tree.id)).toMatchObject({ state: 'exited', exitCode: 137 })
    expect(await stillWrites('/tmp/far')).toBe(false)
    expect(await stillWrites('/tmp/near')).toBe(false)
  })

  test('a background process stopped by STOP continues after CONT', async () => {
    const { id } = await background.sh(machine(), writer('/tmp/ticks'))
    await eventually(async () => ((await stillWrites('/tmp/ticks')) ? true : null))
    await suite.engine().signalProcess(machine(), id, 'STOP')
    expect(await stillWrites('/tmp/ticks')).toBe(false)
    await suite.engine().signalProcess(machine(), id, 'CONT')
    await eventually(async () => ((await stillWrites('/tmp/ticks')) ? true : null))
    await suite.engine().forgetProcess(machine().id, id)
    expect(await stillWrites('/tmp/ticks')).toBe(false)
  })

  // BERTH_TEST_PROCESSES asks for more of them, as beside busy loops on every core.
  const times = Number(process.env['BERTH_TEST_PROCESSES'] ?? 80)

  test(
    'output is complete as soon as a background process has ended, however short it is',
    async () => {
      // The limit is below the number of processes, because ended ones do not count.
      const ref = await suite.running({}, { size: { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 } })
      let left = times
      const callers = Array.from({ length: 4 }, async () => {
        while (left-- > 0) {
          const { id } = await background.sh(ref, 'echo out; echo err >&2; printf last; exit 7')
          const { state, exitCode } = await background.over(ref, id, 60_000)
          const { stdout, stderr } = await background.output(ref, id)
          expect({ state, exitCode, stdout, stderr }).toEqual({
            state: 'exited',
            exitCode: 7,
            stdout: 'out\nlast',
            stderr: 'err\n',
          })
        }
      })
      await Promise.all(callers)
    },
    Math.max(120_000, times * 2000),
  )

  test('the last megabyte of a long output is kept at its exact offsets', async () => {
    const total = 5 * MB
    const { id } = await background.sh(machine(), `seq -f %015.0f 0 ${total / 16 - 1}`)
    const { output } = await background.over(machine(), id)
    expect(output.to).toBe(total)
    expect(output.to - output.from).toBeGreaterThanOrEqual(limits.processOutputBytes - 1024)
    expect(output.to - output.from).toBeLessThanOrEqual(limits.processOutputBytes * 1.5)
    const { stdout } = await background.output(machine(), id)
    expect(stdout.length).toBe(output.to - output.from)
    const first = Math.ceil(output.from / 16)
    const lines = stdout
      .slice(first * 16 - output.from)
      .trimEnd()
      .split('\n')
    expect(lines.every((line, i) => Number(line) === first + i)).toBe(true)
    expect(lines.at(-1)).toBe(`${total / 16 - 1}`.padStart(15, '0'))
  })

  test('a background process that prints endlessly gets backpressure and does not block other commands', async () => {
    const { id } = await background.start(machine(), ['yes'])
    await eventually(async () => {
      const status = await background.status(machine(), id)
      return status && status.output.from > 0 ? true : null
    }, 60_000)
    expect(await suite.sh(machine(), 'echo meanwhile')).toMatchObject({ stdout: 'meanwhile\n' })
    await suite.engine().forgetProcess(machine().id, id)
  })

  test('a background process ends even if a child keeps its output open', async () => {
    const { id } = await background.sh(machine(), 'sleep 60 & yes > /proc/self/fd/1 & sleep 0.2; exit 5')
    expect(await background.over(machine(), id)).toMatchObject({ state: 'exited', exitCode: 5 })
    await suite.engine().forgetProcess(machine().id, id)
  })

  test('a new engine continues to read output without loss or duplicates and reports the exit code', async () => {
    const ref = await suite.running()
    const ongoing = await background.sh(
      ref,
      'i=0; while [ $i -lt 400 ]; do echo $i; i=$((i+1)); sleep 0.01; done; exit 6',
    )
    const full = await background.sh(ref, 'head -c 300000 /dev/zero; echo end >&2; exit 4')
    const brief = await background.sh(ref, 'until [ -e /tmp/go ]; do sleep 0.05; done; echo unheard; exit 8')
    await background.printed(ref, ongoing.id, '\n20\n')
    await background.over(ref, full.id)
    await suite.reopen(async () => {
      // As long as no engine is there: one ends, another fills its pipe.
      await new Promise((resolve) => setTimeout(resolve, 1000))
    })
    expect(await background.status(ref, brief.id)).toMatchObject({ state: 'running', pid: brief.pid })
    await suite.sh(ref, ': > /tmp/go')
    expect(await background.over(ref, brief.id)).toMatchObject({ state: 'exited', exitCode: 8 })
    expect((await background.output(ref, brief.id)).stdout).toBe('unheard\n')
    expect(await background.over(ref, ongoing.id, 60_000)).toMatchObject({ state: 'exited', exitCode: 6 })
    const numbers = Array.from({ length: 400 }, (_, i) => `${i}\n`).join('')
    expect((await background.output(ref, ongoing.id)).stdout).toBe(numbers)
    expect(await background.status(ref, full.id)).toMatchObject({ state: 'exited', exitCode: 4 })
    const kept = await background.output(ref, full.id)
    expect([kept.stdout.length, kept.stderr]).toEqual([300_000, 'end\n'])
    const after = await background.sh(ref, 'echo of the new engine')
    expect(await background.over(ref, after.id)).toMatchObject({ state: 'exited', exitCode: 0 })
  })

  test('the exit code and output of a process that ends while no engine is running are reported', async () => {
    const ref = await suite.running()
    const { id } = await background.sh(ref, 'sleep 1; echo nobody; echo heard >&2; exit 12')
    const sleeping = await background.start(ref, ['sleep', '600'])
    await suite.reopen(async () => {
      await new Promise((resolve) => setTimeout(resolve, 2500))
    })
    expect(await background.over(ref, id)).toMatchObject({ state: 'exited', exitCode: 12 })
    expect(await background.output(ref, id)).toMatchObject({ stdout: 'nobody\n', stderr: 'heard\n' })
    await suite.engine().signalProcess(ref, sleeping.id, 'TERM')
    expect(await background.over(ref, sleeping.id)).toMatchObject({ exitCode: 143 })
  })

  test('a background process that does not read takes as much input as its pipe holds', async () => {
    const { id } = await background.sh(machine(), 'until [ -e /tmp/read ]; do sleep 0.05; done; wc -c', {
      takesInput: true,
    })
    const data = Buffer.alloc(100_000, 'x')
    const taken = await suite.engine().writeProcess(machine(), id, data, true)
    expect(taken).toBeGreaterThan(4096)
    expect(taken).toBeLessThan(data.length)
    await suite.sh(machine(), ': > /tmp/read')
    expect(await suite.engine().writeProcess(machine(), id, data.subarray(taken), true)).toBe(
      data.length - taken,
    )
    expect(await background.over(machine(), id)).toMatchObject({ exitCode: 0 })
    expect((await background.output(machine(), id)).stdout.trim()).toBe('100000')
  })

  test('an open input outlives the engine, and one that was ended stays ended', async () => {
    const ref = await suite.running()
    const open = await background.start(ref, ['cat'], { takesInput: true })
    const ended = await background.sh(ref, 'cat; sleep 600', { takesInput: true })
    const write = async (id: string, text: string, end: boolean) =>
      await suite.engine().writeProcess(ref, id, Buffer.from(text), end)
    await write(open.id, 'before ', false)
    await write(ended.id, 'all', true)
    await suite.reopen()
    expect(await background.status(ref, ended.id)).toMatchObject({ state: 'running', takesInput: false })
    await write(open.id, 'after', true)
    expect(await background.over(ref, open.id)).toMatchObject({ exitCode: 0 })
    expect((await background.output(ref, open.id)).stdout).toBe('before after')
    await background.printed(ref, ended.id, 'all')
    await suite.engine().forgetProcess(ref.id, ended.id)
  })
}
