// Reading Server-Sent Events as a client does.

import { createParser, type EventSourceMessage } from 'eventsource-parser'

export type ReceivedEvent = { event: string | undefined; id: string | undefined; data: unknown }

/** Events as they come; comments go to `onComment`. Leaving the loop closes the connection. */
export async function* readEvents(
  response: Response,
  onComment: (comment: string) => void = () => {},
): AsyncGenerator<ReceivedEvent> {
  if (!response.body) throw new Error('the response has no body')
  const received: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (message) => void received.push(message), onComment })
  for await (const text of response.body.pipeThrough(new TextDecoderStream('utf-8', { fatal: true }))) {
    parser.feed(text)
    for (let message = received.shift(); message; message = received.shift()) {
      yield { event: message.event, id: message.id, data: JSON.parse(message.data) as unknown }
    }
  }
}

export async function collectEvents(
  response: Response,
  onComment?: (comment: string) => void,
): Promise<ReceivedEvent[]> {
  const events: ReceivedEvent[] = []
  for await (const event of readEvents(response, onComment)) events.push(event)
  return events
}
