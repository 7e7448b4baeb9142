/** A healthcheck for what has no better one: somebody takes connections. */
export function listensAt(port: number, host = '127.0.0.1'): string[] {
  return ['bash', '-c', `: </dev/tcp/${host}/${port}`]
}
