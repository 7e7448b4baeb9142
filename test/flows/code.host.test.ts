// Code in units of berth.local/code by the SDK, with real kernels in both classes.

import { Berth as Client, type CodeOutcome, type Unit } from '../../packages/sdk/src/index.ts'
import { beforeAll, describe, expect, it } from 'vitest'
import { keepsMemory } from '../support/memory-kept.ts'
import { usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth(null)

/** A start of kernels in a sandbox, on a machine that does other things. */
const STARTS_MS = 120_000

describe.each(usualClasses)('with %s, code', (isolation) => {
  let unit: Unit
  let client: Client
  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: isolation, BERTH_FROZEN_FOR: '0s' })
    const { baseUrl, apiKey } = berth.credentials
    client = new Client({ url: baseUrl, apiKey })
    unit = await client.units.create({ image: 'berth.local/code:1', size: 'medium', waitTimeoutMs: 600_000 })
    await unit.code.run('1', { timeoutMs: STARTS_MS })
  }, 700_000)

  const run = async (code: string, options: Parameters<Unit['code']['run']>[1] = {}): Promise<CodeOutcome> =>
    await unit.code.run(code, { timeoutMs: STARTS_MS, ...options })

  /** The programs that wait in the unit to ask its interpreter. */
  const clients = async () => {
    const find =
      'for p in /proc/[0-9]*; do case $(readlink $p/exe) in */client) echo ${p#/proc/};; esac; done'
    const { stdout } = await unit.exec(['sh', '-c', find])
    return stdout.split('\n').filter((pid) => pid !== '')
  }

  it('gives the value of its last line, what it printed, and its error', async () => {
    const { text, stdout, stderr, error } = await run(
      'import sys\nprint("out")\nprint("err", file=sys.stderr)\n6 * 7',
    )
    expect({ text, stdout, stderr, error }).toEqual({
      text: '42',
      stdout: 'out\n',
      stderr: 'err\n',
      error: null,
    })
    const failed = await run('1 / 0')
    expect(failed.error).toMatchObject({ name: 'ZeroDivisionError', value: 'division by zero' })
  })

  it('gives a plot as a picture and as data, and a table as data', async () => {
    const drawn = await run(
      'import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], label="own")\nplt.xlabel("Time (s)")\nplt.show()',
    )
    expect(drawn.results[0]?.data['application/vnd.berth.chart+json']).toMatchObject({
      type: 'line',
      x_label: 'Time (s)',
      x_unit: 's',
      elements: [
        {
          label: 'own',
          points: [
            [0, 1],
            [1, 2],
            [2, 3],
          ],
        },
      ],
    })
    const [plot] = drawn.images
    expect(plot?.mime).toBe('image/png')
    expect(
      Buffer.from(plot?.bytes ?? [])
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG')
    expect(
      Buffer.from(plot?.bytes ?? [])
        .subarray(-8, -4)
        .toString(),
    ).toBe('IEND')
    const [table] = (await run('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", "y"]})')).results
    expect(table?.data).toMatchObject({
      'text/html': expect.stringContaining('<table'),
      'application/vnd.dataresource+json': {
        data: [
          { a: 1, b: 'x' },
          { a: 2, b: 'y' },
        ],
        rows: 2,
      },
    })
  })

  it('of each language keeps its variables', async () => {
    const each = [
      ['python', 'x = 5', 'x + 1', '6'],
      ['javascript', 'const x = 5', 'await Promise.resolve(x + 1)', '6'],
      ['typescript', 'enum E { X = 5 }; interface P { x: E }; const p: P = { x: E.X }', 'p.x + 1', '6'],
      ['bash', 'x=5', 'echo $((x + 1))', '6\n'],
      ['r', 'x <- 5', 'x + 1', '[1] 6'],
    ] as const
    for (const [language, first, second, expected] of each) {
      expect((await run(first, { language })).error).toBe(null)
      const { stdout, results } = await run(second, { language })
      expect({ language, said: stdout || results[0]?.data['text/plain'] }).toEqual({
        language,
        said: expected,
      })
    }
  })

  it('imports modules of its own that are named as parts of the interpreter', async () => {
    await run('for name in ("modules", "charts", "kernel"): open(f"{name}.py", "w").write("mine = 5")')
    const { error, results } = await run(
      'import modules, charts, kernel; modules.mine + charts.mine + kernel.mine',
    )
    expect({ error, said: results[0]?.data['text/plain'] }).toEqual({ error: null, said: '15' })
  })

  it('without end is interrupted within a second and keeps its variables', async () => {
    const context = await unit.code.createContext()
    await run('kept = 7', { context })
    const running = run('print("begun", flush=True)\nwhile True: pass', { context })
    await expect
      .poll(async () => (await unit.code.contexts()).find(({ id }) => id === context.id)?.state)
      .toBe('busy')
    await unit.code.interrupt(context)
    expect((await running).error?.name).toBe('KeyboardInterrupt')
    const late = await run('while True: pass', { context, timeoutMs: 500 })
    expect(late.info).toMatchObject({ timedOut: true, error: { name: 'KeyboardInterrupt' } })
    expect((await run('kept', { context })).text).toBe('7')
    await unit.code.delete(context)
  })

  it('of a machine that was made ahead runs at once, in the environment of its unit', async () => {
    // The file of its lock is older than a unit that took a ready machine.
    const isAhead = '[ "$(stat -c %Y /run/berth-code.lock)" -lt "$BEGAN" ]; echo $?'
    await expect
      .poll(
        async () => {
          const env = { BEGAN: String(Math.floor(Date.now() / 1000)), WORD: 'its own' }
          const made = await client.units.create({ image: 'berth.local/code:1', size: 'medium', env })
          const { text } = await made.code.run("import os; (os.environ['WORD'], os.environ['HOME'])", {
            timeoutMs: STARTS_MS,
          })
          const { stdout: said } = await made.code
            .run('echo $WORD', { language: 'bash' })
            .then(({ info }) => info)
          const { stdout } = await made.exec(['sh', '-c', isAhead])
          await made.destroy()
          expect({ text, said }).toEqual({ text: "('its own', '/root')", said: 'its own\n' })
          return stdout
        },
        { interval: 3000 },
      )
      .toBe('0\n')
  })

  const harms: [string, string, (outcome: CodeOutcome) => void, timeoutMs?: number][] = [
    [
      'prints without end',
      'while True: print("x" * 1000)',
      ({ info, error }) => expect([info.timedOut, error?.name]).toEqual([true, 'KeyboardInterrupt']),
      5000,
    ],
    [
      'reads by what its kernel is reached',
      'import glob, json\nfor path in glob.glob("/run/berth-code/**/*.json", recursive=True): json.load(open(path))\n"read"',
      ({ text }) => expect(text).toBe("'read'"),
    ],
    [
      'kills its kernel',
      'import os\nos.kill(os.getpid(), 9)',
      ({ error }) => expect(error?.name).toBe('KernelDied'),
    ],
    [
      'closes stdout',
      'import sys, os\nsys.stdout.close()\nos.close(1)',
      ({ error }) => expect(error).toBe(null),
    ],
    [
      'forks',
      'import os\nprint("child" if os.fork() == 0 else "parent")',
      ({ stdout }) => expect(stdout).toContain('parent'),
    ],
    [
      'prints more than an answer takes',
      'for i in range(100): print("x" * 10**6)',
      ({ info }) => expect([info.truncated, info.stdout.length]).toEqual([true, 1_048_576]),
    ],
    [
      'has a value of a gigabyte',
      '"x" * 10**9',
      // In a unit with room for two of them; what the interpreter makes to print it may be one more.
      ({ text, error }) =>
        expect(error === null ? (text ?? '').length < 100_000 : error.name).toEqual(
          error === null ? true : expect.stringMatching(/^(MemoryError|KernelDied)$/),
        ),
    ],
    [
      'leaves its interpreter',
      'import os\nos._exit(3)',
      ({ error }) => expect(error?.name).toBe('KernelDied'),
    ],
    [
      'shows a page with a script',
      'from IPython.display import HTML\nHTML("<script>alert(1)</script>")',
      ({ results }) => expect(results[0]?.data['text/html']).toBe('<script>alert(1)</script>'),
    ],
  ]
  it.each(harms)(
    'that %s is answered, and the next call works',
    async (_what, code, check, timeoutMs = STARTS_MS) => {
      check(await run(code, { timeoutMs }))
      const next = await run('print("fine")\n1 + 1')
      expect([next.stdout, next.text]).toEqual(['fine\n', '2'])
    },
  )

  it('of twelve contexts at once has each its own output', async () => {
    const contexts = await Promise.all(Array.from({ length: 12 }, () => unit.code.createContext()))
    const said = await Promise.all(
      contexts.map((context, index) => run(`x = ${index}\nfor _ in range(50): print(x)\nx`, { context })),
    )
    expect(said.map(({ text }) => text)).toEqual(contexts.map((_, index) => String(index)))
    for (const [index, { stdout }] of said.entries()) expect(stdout).toBe(`${index}\n`.repeat(50))
    for (const context of contexts) await unit.code.delete(context)
  })

  it.skipIf(isolation === 'runc')(
    'is asked by the program that answered before, and by another once the unit has ended that',
    async () => {
      await run('kept = 5')
      const before = await clients()
      expect(before).not.toEqual([])
      expect((await run('kept')).text).toBe('5')
      expect(await clients()).toEqual(before)
      await unit.exec(['kill', '-9', ...before])
      await expect.poll(clients).toEqual([])
      expect((await run('kept + 1')).text).toBe('6')
    },
  )

  it.skipIf(isolation === 'runc' || !keepsMemory.gvisor)(
    'goes on with its variables after a long sleep',
    async () => {
      await run('kept = {"a": 1}')
      await unit.sleep('10m', { now: true })
      expect((await unit.refresh()).info.memory).toMatchObject({ kept: true })
      expect((await run('kept')).text).toBe("{'a': 1}")
    },
  )

  it('says that its context is lost after a stop, and runs in it again after a restart', async () => {
    const context = await unit.code.createContext()
    await run('x = 1', { context })
    await unit.stop()
    await unit.start()
    const lost = await run('x', { context }).catch((error: unknown) => error)
    expect(lost).toMatchObject({ code: 'invalid_state', details: { context: 'lost' } })
    await unit.code.restart(context)
    expect((await run('x', { context })).error?.name).toBe('NameError')
  })

  it('has no server that another unit could reach', async () => {
    const loopback = '0100007F'
    const { stdout } = await unit.exec(['sh', '-c', 'stat -c %A /run/berth-code; tail -n +2 /proc/net/tcp'])
    const [mode, ...sockets] = stdout.trim().split('\n')
    expect(mode).toMatch(/^drwx-{5}/)
    expect(sockets.map((line) => line.trim().split(/[\s:]+/)[1]).filter((at) => at !== loopback)).toEqual([])
  })
})

describe.skipIf(!keepsMemory.gvisor)('with gvisor, in a unit that stood frozen first, code', () => {
  it('goes on with its variables after a long sleep', async () => {
    await berth.start({ BERTH_ISOLATION: 'gvisor', BERTH_FROZEN_FOR: '2s' })
    const { baseUrl, apiKey } = berth.credentials
    const client = new Client({ url: baseUrl, apiKey })
    const unit = await client.units.create({
      image: 'berth.local/code:1',
      size: 'medium',
      waitTimeoutMs: 600_000,
    })
    await unit.code.run('kept = {"a": 1}', { timeoutMs: STARTS_MS })
    await unit.sleep('10m', { now: true })
    await expect
      .poll(async () => (await unit.refresh()).info.memory, { timeout: 60_000 })
      .toMatchObject({ kept: true })
    expect((await unit.code.run('kept', { timeoutMs: STARTS_MS })).text).toBe("{'a': 1}")
  }, 900_000)
})
