// The outcomes of a proxied request.

export type ProxyResult =
  /** The visitor has the response, has disconnected, or was cut off: nothing is left to send. */
  | { kind: 'closed' }
  /** The unit has not seen the request, so it can be sent again. */
  | { kind: 'refused-connection' }
  /** A kept connection ended just when it was used, so the request can be sent again. */
  | { kind: 'stale' }
  | { kind: 'bad-gateway' }
  | { kind: 'too-slow' }
  | { kind: 'visitor-too-slow' }
  | { kind: 'malformed' }
