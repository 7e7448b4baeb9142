// What clients and servers of PostgreSQL send first, as bytes.

export const SSL_REQUEST = Buffer.from('0000000804d2162f', 'hex')
/** Of a user with the name "a". */
export const STARTUP = Buffer.concat([Buffer.from('0000001100030000', 'hex'), Buffer.from('user\0a\0\0\0')])
export const AUTHENTICATED = Buffer.from('520000000800000000', 'hex')
export const READY = Buffer.from('5a0000000549', 'hex')

/** A server's message with the key of a session: a process and a secret. */
export function keyed(key: Buffer): Buffer {
  const head = Buffer.from('4b00000000', 'hex')
  head.writeInt32BE(4 + key.length, 1)
  return Buffer.concat([head, key])
}

/** The request to cancel what runs in the session of this key. */
export function cancelOf(key: Buffer): Buffer {
  const head = Buffer.from('0000000004d2162e', 'hex')
  head.writeInt32BE(8 + key.length)
  return Buffer.concat([head, key])
}
