// Several messages in one request, as the protocol's revision of March 2025 allows. Each is answered in turn as if
// sent alone, and the answers are sent together.

import { hasEnvelope, headOf } from './messages.ts'
import { readText, type WebAnswer } from './bridge.ts'

const MOST = 10

/** `refuse` answers the whole batch with an error; `one` answers one message. */
export async function answerBatch(
  messages: unknown[],
  {
    one,
    refuse,
  }: { one: (message: unknown) => Promise<WebAnswer>; refuse: (why: string) => Promise<WebAnswer> },
): Promise<WebAnswer> {
  if (messages.length === 0) return await refuse('A batch has at least one message.')
  if (messages.length > MOST) return await refuse(`A batch has at most ${MOST} messages.`)
  if (messages.some((message) => headOf(message).method === 'initialize')) {
    return await refuse('initialize comes alone, not in a batch.')
  }
  if (messages.some(hasEnvelope)) {
    return await refuse(
      'This revision of the protocol has no batches: send each message in a request of its own.',
    )
  }
  const answers: unknown[] = []
  for (const message of messages) answers.push(...answersIn(await readText(await one(message))))
  if (answers.length === 0) return { status: 202, headers: {}, body: null }
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: [Buffer.from(JSON.stringify(answers))],
  }
}

/** Returns the results and errors in a body of JSON or of events, without the notifications before them. */
function answersIn({ type, text }: { type: string; text: string }): unknown[] {
  const texts = type.startsWith('text/event-stream')
    ? text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [line.slice('data: '.length)] : []))
    : [text].filter((body) => body !== '')
  return texts.map((each): unknown => JSON.parse(each)).filter((answer) => headOf(answer).method === null)
}
