// The result of a route that answers with a WebSocket: a stream of messages in each direction.

export type WebSocketMessage = { isText: boolean; data: Buffer }

/** The other end. It is read no faster than the route takes messages, and sent to no faster than it reads. */
export type WebSocketPeer = {
  /** Ends when the client goes away. */
  messages: AsyncIterable<WebSocketMessage>
  /** These two resolve when there is room for more, and reject once the client has gone. */
  sendBinary: (data: Buffer) => Promise<void>
  sendJson: (value: unknown) => Promise<void>
}

export type WebSocketAnswer = { serveWebSocket: (peer: WebSocketPeer) => Promise<void> }

/** The WebSocket is open while this runs. */
export function webSocket(serveWebSocket: WebSocketAnswer['serveWebSocket']): WebSocketAnswer {
  return { serveWebSocket }
}

export function isWebSocketAnswer(value: unknown): value is WebSocketAnswer {
  return typeof value === 'object' && value !== null && 'serveWebSocket' in value
}
