// Text of others, for a terminal or a line of a table.

/** Removes control characters from untrusted text, because a terminal would obey them. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?')
}
