// Calls between two processes of ours in lines of JSON over one connection, which takes a millisecond less there and
// back than HTTP does: for what is short and somebody waits for. Each call has a number, which its answer bears, too, so
// that answers come in whatever order they are done. Between them the answering side may say other things, and empty
// lines, which tell a quiet side from one that is gone.

import type { Socket } from 'node:net'
import { readLines } from './lines.ts'

type Numbered = { id: number }

export type JsonLinesClient<Question, Answer> = {
  isOver: () => boolean
  /** The answer as it was said. Rejects at the deadline and when the connection ends, in the caller's words. */
  call: (question: Question, deadlineMs: number) => Promise<Answer>
}

type Calling<Question, Answer> = {
  /** Of one line. */
  mostBytes: number
  /** What answers a call; null of what answers none. Throwing ends the connection. */
  hear: (line: string) => Answer | null
  late: (question: Question) => Error
  over: (cause: Error | undefined) => Error
}

/** The side that asks. Begins at once, also while the socket is still connecting. */
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
      socket.destroy(new Error('the other side says what nobody understands'))
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
  /** Says something that nobody asked; empty: that this side is there. */
  say: (line: string) => void
  /** What is in flight is answered, nothing else, and the connection ends. */
  end: () => void
}

type Answering = {
  /** Of one line. */
  mostBytes: number
  /** Whoever reads its answers more slowly than they come is cut off. */
  mostUnreadBytes: number
  /** Calls in flight. */
  mostCalls: number
  /** Never rejects. Null of a line that is no call, which ends the connection: whoever says it is none of ours. */
  answer: (line: string) => Promise<Numbered> | null
}

/** The side that answers. */
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
