// What of Codex's calls gets into the audit log, of messages as its program of 0.171.0 writes them, and in how many rows.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { codex } from '../../packages/agents/src/codex.ts'
import { type CallReport, createCallReport } from '../../packages/agents/src/relay-report.ts'

const { callIn } = codex

const message = (method: string, params: object) => JSON.stringify({ id: 11, method, params })
const start = (argv: unknown) =>
  message('process/start', {
    processId: '8677',
    metadata: { threadId: '01a22a22-fc67', toolCallId: 'exec-1' },
    argv,
    cwd: 'file:///tmp',
    env: { TOKEN: 'hidden-value' },
  })

describe('of a call', () => {
  it('its method, command and session are told, and nothing of its environment', () => {
    const argv = ['/bin/bash', '-lc', 'npm test']
    expect(callIn(start(argv))).toEqual({ method: 'process/start', cmd: argv, session: '01a22a22-fc67' })
  })

  it('the path of a file is told where it is read or changed, and never what is in it', () => {
    const params = { path: 'file:///workspace/a%20b', dataBase64: 'aGlkZGVu', sandbox: null }
    for (const method of ['fs/readFile', 'fs/writeFile', 'fs/remove'])
      expect(callIn(message(method, params))).toEqual({ method, path: '/workspace/a b' })
    expect(callIn(message('fs/getMetadata', params))).toEqual({ method: 'fs/getMetadata' })
  })

  it('that is longer than what is kept of it, its method is told', () => {
    expect(callIn(message('fs/writeFile', { path: 'x', data: 'y'.repeat(100) }).slice(0, 60))).toEqual({
      method: 'fs/writeFile',
    })
  })

  it('a command of any size is cut', () => {
    const { cmd = [] } = callIn(start(Array.from({ length: 1000 }, () => 'x'.repeat(1000)))) ?? {}
    expect(cmd.join('').length).toBe(4000)
    expect(callIn(start(Array.from({ length: 1000 }, () => ''))) ?? {}).toMatchObject({
      cmd: Array.from({ length: 64 }, () => ''),
    })
  })

  it.each([
    '{"id":1,"result":{"method":"not/this"}}',
    '[]',
    'null',
    '7',
    '',
    '{"method":7}',
    '{"method":"<script>"}',
    '{"method":"__/x\\u0000"}',
    '{',
  ])('%s is none', (text) => expect(callIn(text)).toBeNull())

  it('that has other things where its command and its file are, its method is told', () => {
    const params = { argv: { 0: 'x' }, path: 7, metadata: 'x' }
    expect(callIn(message('fs/readFile', params))).toEqual({ method: 'fs/readFile' })
    expect(callIn('{"method":"fs/readFile","params":null}')).toEqual({ method: 'fs/readFile' })
  })
})

describe('reports', () => {
  let written: Parameters<Parameters<typeof createCallReport>[0]>[0][]
  let said: unknown[]
  let isAway: boolean
  let report: CallReport
  beforeEach(() => {
    vi.useFakeTimers()
    ;[written, said, isAway] = [[], [], false]
    report = createCallReport(
      async (calls) => {
        if (isAway) throw new Error('away')
        written.push(calls)
      },
      (error) => void said.push(error),
    )
  })
  afterEach(() => void vi.useRealTimers())

  it('are written every ten seconds, with how often each call was', async () => {
    for (let time = 0; time < 3; time++) report.add({ method: 'fs/readFile', path: '/a' })
    report.add({ method: 'process/start', cmd: ['true'] })
    await vi.advanceTimersByTimeAsync(9000)
    expect(written).toEqual([])
    await vi.advanceTimersByTimeAsync(1000)
    const calls = [
      { method: 'fs/readFile', path: '/a', count: 3 },
      { method: 'process/start', cmd: ['true'], count: 1 },
    ]
    expect(written).toEqual([calls])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(written).toHaveLength(1)
    await report.end()
  })

  it('are one a second of forty calls at most, however many there are, and none is uncounted', async () => {
    for (let second = 0; second < 10; second++) {
      for (let call = 0; call < 500; call++) {
        report.add({ method: 'process/start', cmd: ['echo', `${second}-${call}`] })
        report.add({ method: `method/${'x'.repeat(1 + (call % 50))}` })
      }
      await vi.advanceTimersByTimeAsync(1000)
    }
    await report.end()
    expect(written.length).toBeLessThanOrEqual(11)
    const all = written.flat()
    expect(Math.max(...written.map((calls) => calls.length))).toBeLessThanOrEqual(40)
    expect(all.filter(({ cmd }) => cmd !== undefined)).toHaveLength(200)
    expect(all.reduce((sum, { count = 0 }) => sum + count, 0)).toBe(10_000)
  })

  it('that could not be written are in the next one, and that is said', async () => {
    isAway = true
    report.add({ method: 'process/start', cmd: ['true'] })
    await vi.advanceTimersByTimeAsync(40_000)
    expect(said).toEqual([new Error('away')])
    isAway = false
    await report.end()
    expect(written).toEqual([[{ method: 'process/start', cmd: ['true'], count: 1 }]])
  })
})
