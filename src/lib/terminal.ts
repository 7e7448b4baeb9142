// Prints plain sentences for the operator on standard output. The log is elsewhere.

/** The reader of a pipe, such as `head`, may close it; that is not an error. */
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Prints an error and what to do about it, in one sentence. */
export function printError(text: string): void {
  process.stderr.write(`berth: ${text}\n`)
}
