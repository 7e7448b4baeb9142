// The classes of bytes on a connection, and what follows both of its sides (classify-bytes.ts).

export type BytesClass = 'nothing' | 'word' | 'question'
/** Parses one direction of one connection, piece by piece. */
export type Classifier = (piece: Buffer) => BytesClass

export type Listening = {
  toVisitor: Classifier
  toUnit: Classifier
  /**
   * Returns the keepalive to send to a visitor whose unit is frozen, or null. Never within a message that the unit
   * has begun.
   */
  keepAlive: () => Buffer | null
}
