// RPC between two of Berth's processes, as JSON lines over one connection: a millisecond faster per round trip than
// HTTP, for short calls that someone waits for. Each call has a number, which its answer repeats, so answers may come
// in any order. The answering side may also send events, and empty lines that show it is alive.

import type { Socket } from 'node:net'
import { readLines } from './read-lines.ts'

type Numbered = { id: number }

export type JsonLinesClient<Question, Answer> = {
  isOver: () => boolean
  /**
   * Resolves to the answer. Rejects at the deadline and when the connection ends, with an error that the caller
   * provides.
   */
  call: (question: Question, deadlineMs: number) => Promise<Answer>
}

type Calling<Question, Answer> = {
  /** The longest line in bytes. */
  mostBytes: number
  /**
   * Parses the answer to a call; returns null for other lines, which it handles itself. Throwing ends the connection.
   */
  hear: (line: string) => Answer | null
  late: (question: Question) => Error
  over: (cause: Error | undefined) => Error
}

/** The calling side. It may send calls while the socket is still connecting. */
export function openJsonLinesClient<Question extends object, Answer extends Numbered>(
  socket: Socket,
  { mostBytes, hear, late, over }: Calling<Question, Answer>,
): JsonLinesClient<Question, Answer> {
  const asked = new Map<number, PromiseWithResolvers<Answer>>()
  let lastId = 0
  let cause: Error | undefined

  readLines(socket, mostBytes, (line) => {
    try {
      const answer = hear(line)
      if (answer) asked.get(answer.id)?.resolve(answer)
    } catch {
      socket.destroy(new Error('the other side sent an invalid line'))
    }
  })
  socket.once('error', (error) => {
    cause = error
  })
  socket.once('close', () => {
    for (const { reject } of asked.values()) reject(over(cause))
  })

  return {
    isOver: () => !socket.writable,
    async call(question, deadlineMs) {
      lastId += 1
      const id = lastId
      const answered = Promise.withResolvers<Answer>()
      asked.set(id, answered)
      const deadline = setTimeout(() => answered.reject(late(question)), deadlineMs)
      socket.write(`${JSON.stringify({ id, ...question })}\n`)
      try {
        return await answered.promise
      } finally {
        clearTimeout(deadline)
        asked.delete(id)
      }
    },
  }
}

export type JsonLinesServer = {
  /** Sends an event; an empty line means that this side is alive. */
  say: (line: string) => void
  /** Answers the calls in progress, accepts no others, then ends the connection. */
  end: () => void
}

type Answering = {
  /** The longest line in bytes. */
  mostBytes: number
  /** A client that reads its answers more slowly than this is disconnected. */
  mostUnreadBytes: number
  /** The most calls in progress. */
  mostCalls: number
  /** Never rejects. Returns null for a line that is not a call, which ends the connection. */
  answer: (line: string) => Promise<Numbered> | null
}

/** The answering side. */
export function serveJsonLines(
  socket: Socket,
  { mostBytes, mostUnreadBytes, mostCalls, answer }: Answering,
): JsonLinesServer {
  let unanswered = 0
  let isEnding = false

  const say = (line: string) => {
    if (socket.destroyed) return
    socket.write(`${line}\n`)
    if (socket.writableLength > mostUnreadBytes) socket.destroy()
  }
  const endIfDone = () => {
    if (isEnding && unanswered === 0) socket.end(() => socket.destroy())
  }
  const hear = async (line: string) => {
    if (isEnding) return
    const answering = unanswered < mostCalls ? answer(line) : null
    if (!answering) return void socket.destroy()
    unanswered += 1
    say(JSON.stringify(await answering))
    unanswered -= 1
    endIfDone()
  }
  readLines(socket, mostBytes, (line) => void hear(line))

  return {
    say,
    end: () => {
      isEnding = true
      endIfDone()
    },
  }
}
