/** A healthcheck for services without a better one: a connection to the port succeeds. */
export function listensAt(port: number, host = '127.0.0.1'): string[] {
  return ['bash', '-c', `: </dev/tcp/${host}/${port}`]
}
