/** Returns the code of an error of the system, of Node or of Postgres, such as `ENOENT`; an empty string if it has none. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
