// What the person who typed the command reads: plain sentences on standard output. The log is elsewhere.

/** Whoever piped us into `head` may go away; that ends nothing. */
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** What went wrong and what to do about it, in one sentence. */
export function printError(text: string): void {
  process.stderr.write(`berth: ${text}\n`)
}
