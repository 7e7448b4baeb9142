// Makes text that programs or strangers wrote safe for a model to read and a terminal to show: removes escape
// sequences, other control characters, invisible characters and those that change the direction of text, and counts
// them.

/** CSI, OSC and other sequences of ECMA-48, complete or cut short. */
// oxlint-disable-next-line no-control-regex
const escapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~]?)/g

/** All control characters but line feed and tab; direction marks, invisible and tag characters, and noncharacters. */
const unseen =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu

export type Cleaned = { text: string; removed: number }

/** Of a line that carriage returns overwrote, such as a progress bar, keeps the last text. */
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

/** Written by hand because a regular expression would take quadratic time on a long line. */
function lastOverwrite(line: string): string {
  const ended = line.replace(/\r+$/, '')
  return ended.slice(ended.lastIndexOf('\r') + 1)
}

/** Cleans one line of a record: names and reasons that someone else chose. */
export function cleanLine(raw: string, most: number): string {
  const { text } = clean(raw)
  return Array.from(text.replace(/\s+/g, ' ').trim()).slice(0, most).join('')
}
