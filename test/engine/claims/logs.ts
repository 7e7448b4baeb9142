// Log lines have no gaps and no duplicates across pages, runs and followers (reliability F32).

import { expect, test } from 'vitest'
import type { LogLine, LogQuery } from '../../../src/engine/engine.ts'
import { eventually, kindOf, type Suite } from '../suite.ts'

export function logClaims(suite: Suite): void {
  const texts = (lines: LogLine[]) => lines.map((line) => line.text)
  const logs = async (id: string, query: Partial<LogQuery> = {}) =>
    await suite.engine().logs(id, { after: null, since: null, limit: 500, ...query })
  const printing = (count: number) => `i=0; while [ $i -lt ${count} ]; do echo line $i; i=$((i+1)); done`
  const numbered = Array.from({ length: 50 }, (_, i) => `line ${i}`)
  /** Without a loop, which is more than the shell of the fake engine knows. */
  const fifty = numbered.map((line) => `echo ${line}`).join('; ')

  test('lines of stdout and stderr are kept in order with their time and stream', async () => {
    const before = Date.now()
    const ref = await suite.running({
      cmd: ['sh', '-c', 'echo one; echo two; echo bad >&2; echo; echo three'],
    })
    const lines = await suite.logged(ref.id, 5)
    expect(texts(lines.filter((line) => line.stream === 'stdout'))).toEqual(['one', 'two', '', 'three'])
    expect(texts(lines.filter((line) => line.stream === 'stderr'))).toEqual(['bad'])
    for (const { at } of lines) expect(Math.abs(at.getTime() - before)).toBeLessThan(60_000)
  })

  test('pages by cursor have no gaps and no duplicates', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', fifty] })
    await suite.logged(ref.id, 50)
    const newest = await logs(ref.id, { limit: 7 })
    expect(texts(newest)).toEqual(numbered.slice(-7))
    const [first] = await logs(ref.id, { since: new Date(0), limit: 1 })
    const seen = [first].filter((line) => line !== undefined)
    for (;;) {
      const page = await logs(ref.id, { after: seen.at(-1)?.cursor ?? '', limit: 7 })
      if (page.length === 0) break
      seen.push(...page)
    }
    expect(texts(seen)).toEqual(numbered)
  })

  test('lines since a given time are exactly the later ones', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', 'echo early; sleep 1.2; echo late'] })
    const lines = await suite.logged(ref.id, 2)
    const late = lines[1]?.at ?? new Date(0)
    expect(texts(await logs(ref.id, { since: late }))).toEqual(['late'])
    expect(await logs(ref.id, { since: new Date(late.getTime() + 60_000) })).toEqual([])
  })

  test('an invalid cursor is refused', async () => {
    const ref = await suite.running()
    for (const after of ['nonsense', '-1', '../../etc', ' ']) {
      expect([after, await kindOf(logs(ref.id, { after }))]).toEqual([after, 'bad_cursor'])
    }
  })

  test('the log continues across runs, and a cursor of an earlier run stays valid', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', 'echo run one; echo end one'] })
    const [first] = await suite.logged(ref.id, 2)
    await suite.exitOf(ref)
    const second = await suite.start({ id: ref.id, generation: 2 }, { cmd: ['sh', '-c', 'echo run two'] })
    expect(texts(await suite.logged(second.id, 3))).toEqual(['run one', 'end one', 'run two'])
    expect(texts(await logs(ref.id, { after: first?.cursor ?? '' }))).toEqual(['end one', 'run two'])
  })

  test('the lines of one run can be read alone, by time, from a cursor and the newest', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', 'echo run one; echo -n end one'] })
    const [first] = await suite.logged(ref.id, 2)
    await suite.exitOf(ref)
    const second = await suite.start(
      { id: ref.id, generation: 2 },
      { cmd: ['sh', '-c', 'echo run two; echo more of two; sleep infinity'] },
    )
    await suite.logged(second.id, 4)
    for (const [generation, wanted] of [
      [1, ['run one', 'end one']],
      [2, ['run two', 'more of two']],
      [3, []],
    ] as const) {
      expect(texts(await logs(ref.id, { generation }))).toEqual(wanted)
      expect(texts(await logs(ref.id, { generation, limit: 1 }))).toEqual(wanted.slice(-1))
      expect(texts(await logs(ref.id, { generation, since: new Date(0) }))).toEqual(wanted)
      const rest = generation === 1 ? wanted.slice(1) : wanted
      expect(texts(await logs(ref.id, { generation, after: first?.cursor ?? '' }))).toEqual(rest)
    }
  })

  test('following returns past lines, then new ones, and ends with the run', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', 'echo a; echo b; sleep 1; echo c; sleep 1; echo d'] })
    const followed: LogLine[] = []
    for await (const line of suite.engine().followLogs(ref.id, null, new AbortController().signal))
      followed.push(line)
    expect(texts(followed)).toEqual(['a', 'b', 'c', 'd'])
    const rest: LogLine[] = []
    const after = followed[1]?.cursor ?? ''
    for await (const line of suite.engine().followLogs(ref.id, after, new AbortController().signal))
      rest.push(line)
    expect(texts(rest)).toEqual(['c', 'd'])
  })

  test('following ends quietly when the caller aborts', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', 'echo here; sleep infinity'] })
    const abort = new AbortController()
    const seen: string[] = []
    for await (const { text } of suite.engine().followLogs(ref.id, null, abort.signal)) {
      seen.push(text)
      setTimeout(() => abort.abort(), 100)
    }
    expect(seen).toEqual(['here'])
  })

  test('ten followers all get every line', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', `sleep 0.5; ${fifty}; sleep 0.5`] })
    const followers = Array.from({ length: 10 }, async () => {
      const seen: string[] = []
      for await (const line of suite.engine().followLogs(ref.id, null, new AbortController().signal)) {
        seen.push(line.text)
      }
      return seen
    })
    for (const seen of await Promise.all(followers)) expect(seen).toEqual(numbered)
  })

  test('output without a final newline is a line too', async () => {
    const ref = await suite.running({ cmd: ['sh', '-c', 'echo whole; echo -n rest'] })
    expect(texts(await suite.logged(ref.id, 2))).toEqual(['whole', 'rest'])
  })

  test('the log of a machine without output is empty', async () => {
    const spec = await suite.create()
    expect(await logs(spec.id)).toEqual([])
  })

  test('long lines and binary output do not corrupt later lines', async () => {
    const script = 'head -c 20000 /dev/zero; echo; echo -n; echo after'
    const ref = await suite.running({ cmd: ['sh', '-c', script] })
    const lines = await eventually(async () => {
      const found = await suite.logged(ref.id, 2)
      return found.at(-1)?.text === 'after' ? found : null
    })
    expect(lines.slice(0, -1).reduce((sum, line) => sum + line.text.length, 0)).toBe(20_000)
  })

  test.skipIf(suite.options.small)('a line of 100 000 characters is returned whole', async () => {
    const ref = await suite.running({
      cmd: ['bash', '-c', 'printf "%0100000d\\n" 0; printf "\\xff\\xfe\\x00\\n"; echo after'],
    })
    const lines = await eventually(async () => {
      const found = await logs(ref.id)
      return found.at(-1)?.text === 'after' ? found : null
    })
    expect(lines[0]?.text).toBe('0'.repeat(100_000))
    expect(lines[0]).not.toHaveProperty('continues')
  })

  test.skipIf(suite.options.small)('the log keeps the newest 16 MB, and its cursor continues', async () => {
    const lineCount = 300_000
    const line = 'x'.repeat(100)
    const script = `seq -f '%.0f ${line}' 0 ${lineCount - 1}; echo finished`
    const ref = await suite.running({ cmd: ['bash', '-c', script] })
    await suite.exitOf(ref, 60_000)
    const lines = await eventually(async () => {
      const found = await logs(ref.id, { limit: 5 })
      return found.at(-1)?.text === 'finished' ? found : null
    })
    expect(lines.at(-2)?.text).toBe(`${lineCount - 1} ${line}`)
    // From the oldest kept line on: every number once, in order.
    let next = -1
    let after: string | null = null
    for (;;) {
      const page: LogLine[] = await suite
        .engine()
        .logs(ref.id, { after, since: after === null ? new Date(0) : null, limit: 1000 })
      if (page.length === 0) break
      for (const { text } of page) {
        if (text === 'finished') continue
        const number = Number(text.split(' ')[0])
        if (next >= 0) expect(number).toBe(next)
        next = number + 1
      }
      after = page.at(-1)?.cursor ?? null
    }
    expect(next).toBe(lineCount)
  })

  test.skipIf(suite.options.small)('following a busy loop returns every line', async () => {
    const ref = await suite.running({ cmd: ['bash', '-c', printing(3000)] })
    const seen: string[] = []
    for await (const { text } of suite.engine().followLogs(ref.id, null, new AbortController().signal))
      seen.push(text)
    expect(seen).toEqual(Array.from({ length: 3000 }, (_, i) => `line ${i}`))
  })
}
