// An answer that both sides go on with, over a WebSocket. What a route sees of one is frames; they are read no faster than
// the route takes them, and sent no faster than the client does.

export type ConversationFrame = { isText: boolean; data: Buffer }

export type Line = {
  /** Ends when the client goes away. */
  frames: AsyncIterable<ConversationFrame>
  /** These two resolve when there is room for more, and reject once the client has gone. */
  sendBytes: (data: Buffer) => Promise<void>
  sendText: (value: unknown) => Promise<void>
}

export type Conversation = { converse: (line: Line) => Promise<void> }

export function conversation(converse: Conversation['converse']): Conversation {
  return { converse }
}

export function isConversation(value: unknown): value is Conversation {
  return typeof value === 'object' && value !== null && 'converse' in value
}
