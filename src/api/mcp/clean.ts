// What programs and strangers wrote, made fit to be read by a model and shown by a terminal: escape sequences, other control
// characters, and characters that turn text around or cannot be seen are taken out, and it is said how many.

/** CSI, OSC and other sequences of ECMA-48, ended or cut short. */
// oxlint-disable-next-line no-control-regex
const escapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~]?)/g

/** All but line feed and tab; marks of direction, invisible and tag characters, and those that are no characters. */
const unseen =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu

export type Cleaned = { text: string; removed: number }

/** A line that was written over by carriage returns, as a progress bar is, keeps what it said last. */
export function clean(raw: string): Cleaned {
  let removed = 0
  const out = () => {
    removed += 1
    return ''
  }
  const text = raw
    .replace(escapes, out)
    .split('\n')
    .map(lastOverwrite)
    .join('\n')
    .replace(unseen, out)
    .toWellFormed()
  return { text, removed }
}

/** By hand: an expression for this would take the square of a long line's length. */
function lastOverwrite(line: string): string {
  const ended = line.replace(/\r+$/, '')
  return ended.slice(ended.lastIndexOf('\r') + 1)
}

/** The same for one line of a record: names and reasons that somebody else chose. */
export function cleanLine(raw: string, most: number): string {
  const { text } = clean(raw)
  return Array.from(text.replace(/\s+/g, ' ').trim()).slice(0, most).join('')
}
