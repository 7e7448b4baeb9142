import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  serveJsonLines,
  type JsonLinesServer,
  type JsonLinesClient,
  openJsonLinesClient,
} from './json-lines-rpc.ts'

const MAX_BYTES = 1024
const MAX_CALLS = 100

type Question = { say: string; afterMs: number }
type Answer = { id: number; said: string }

let directory: string
let path: string
let server: Server
let socket: Socket
let calls: JsonLinesClient<Question, Answer>
let callers: JsonLinesServer[]
/** Lines from the server that are not responses. */
let heard: string[]

const sleep = async (ms: number) => await new Promise((resolve) => setTimeout(resolve, ms))

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-lines-'))
  path = join(directory, 'socket')
  callers = []
  heard = []
  server = createServer((accepted) => {
    accepted.on('error', () => {})
    callers.push(
      serveJsonLines(accepted, {
        mostBytes: MAX_BYTES,
        mostUnreadBytes: 64 * MAX_BYTES,
        mostCalls: MAX_CALLS,
        answer,
      }),
    )
  })
  server.listen(path)
  await once(server, 'listening')
  socket = connect(path)
  calls = openJsonLinesClient(socket, {
    mostBytes: MAX_BYTES,
    hear: (line) => {
      if (line.startsWith('{')) return JSON.parse(line) as Answer
      if (line === 'nonsense') throw new Error(line)
      heard.push(line)
      return null
    },
    late: ({ say }: Question) => new Error(`late: ${say}`),
    over: (cause) => new Error(`over: ${cause?.message ?? 'ended'}`),
  })
})
afterEach(async () => {
  socket.destroy()
  server.close()
  await once(server, 'close')
  await rm(directory, { recursive: true })
})

function answer(line: string): Promise<Answer> | null {
  if (!line.startsWith('{')) return null
  const { id, say, afterMs } = JSON.parse(line) as Question & { id: number }
  return sleep(afterMs).then(() => ({ id, said: say }))
}

describe('a call', () => {
  test('is answered even if it was made before the connection was established', async () => {
    expect(socket.connecting).toBe(true)
    expect(await calls.call({ say: 'a', afterMs: 0 }, 1000)).toEqual({ id: 1, said: 'a' })
  })

  test('gets its own response in whatever order responses arrive', async () => {
    let overtaken = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ say: fc.string(), afterMs: fc.nat(5) }), { maxLength: 20 }),
        async (questions) => {
          const answers = await Promise.all(
            questions.map(async (question) => await calls.call(question, 10_000)),
          )
          expect(answers.map(({ said }) => said)).toEqual(questions.map(({ say }) => say))
          overtaken += questions.filter(
            ({ afterMs }, at) => afterMs < (questions[at - 1]?.afterMs ?? 0),
          ).length
        },
      ),
      { numRuns: 50 },
    )
    expect(overtaken).toBeGreaterThan(50)
  })

  test('that times out throws its own error, and its late response is ignored', async () => {
    await expect(calls.call({ say: 'slow', afterMs: 50 }, 10)).rejects.toThrow('late: slow')
    expect(await calls.call({ say: 'next', afterMs: 80 }, 1000)).toMatchObject({ said: 'next' })
  })

  test('fails when the connection breaks, together with all other pending calls', async () => {
    const both = [1, 2].map(async (n) => await calls.call({ say: `${n}`, afterMs: 10_000 }, 20_000))
    const failing = Promise.allSettled(both)
    await sleep(20)
    socket.destroy(new Error('broken'))
    expect((await failing).map((result) => result.status === 'rejected' && String(result.reason))).toEqual([
      'Error: over: broken',
      'Error: over: broken',
    ])
    expect(calls.isOver()).toBe(true)
  })

  test('fails if nothing listens at the socket', async () => {
    const nowhere = openJsonLinesClient(connect(`${path}.not`), {
      mostBytes: MAX_BYTES,
      hear: () => null,
      late: () => new Error('late'),
      over: (cause) => new Error(`over: ${cause?.message}`),
    })
    await expect(nowhere.call({}, 1000)).rejects.toThrow('ENOENT')
  })
})

describe('the server side', () => {
  test('can also send lines that are not responses', async () => {
    await calls.call({ say: 'a', afterMs: 0 }, 1000)
    callers[0]?.say('')
    callers[0]?.say('by the way')
    await calls.call({ say: 'b', afterMs: 0 }, 1000)
    expect(heard).toEqual(['', 'by the way'])
  })

  test('has its connection closed when it sends an invalid line', async () => {
    const asked = calls.call({ say: 'a', afterMs: 10_000 }, 20_000)
    const failed = expect(asked).rejects.toThrow('sent an invalid line')
    await sleep(20)
    callers[0]?.say('nonsense')
    await failed
  })

  test('answers pending calls before it closes and refuses later ones', async () => {
    const before = calls.call({ say: 'before', afterMs: 50 }, 1000)
    await sleep(20)
    callers[0]?.end()
    const after = calls.call({ say: 'after', afterMs: 0 }, 1000)
    const refused = expect(after).rejects.toThrow('over')
    expect(await before).toMatchObject({ said: 'before' })
    await refused
  })

  test('closes at once if no call is pending', async () => {
    await calls.call({ say: 'a', afterMs: 0 }, 1000)
    callers[0]?.end()
    await once(socket, 'close')
  })

  test('disconnects a client for an invalid call, an overlong line and too many calls', async () => {
    const hungUpOn = async (said: string) => {
      const other = connect(path)
      other.on('error', () => {})
      other.write(said)
      other.resume()
      await once(other, 'close')
    }
    await hungUpOn('hello\n')
    await hungUpOn('{'.repeat(MAX_BYTES + 1))
    const call = `${JSON.stringify({ id: 1, say: '', afterMs: 10_000 })}\n`
    await hungUpOn(call.repeat(MAX_CALLS + 1))
  })

  test('disconnects a client that does not read its responses', async () => {
    const deaf = connect(path)
    deaf.on('error', () => {})
    deaf.pause()
    await once(deaf, 'connect')
    await sleep(20)
    const caller = callers.at(-1)
    for (let lines = 0; lines < 5000; lines += 1) caller?.say('x'.repeat(1000))
    deaf.resume()
    await once(deaf, 'close')
    expect(callers).toHaveLength(2)
  })
})
