// Quotes values for a shell. A value in the template reaches the command unchanged: no quote or semicolon in it has
// a meaning.

export type Word = string | number | readonly (string | number)[]

/** One word that a POSIX shell reads as exactly this text. */
export function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`
}

/** The line of a template: what was written as it is, what was put in as one word, or one for each item of an array. */
export function shellLine(parts: readonly string[], words: readonly Word[]): string {
  return parts.map((part, index) => part + (index < words.length ? quoted(words[index] ?? '') : '')).join('')
}

function quoted(word: Word): string {
  return typeof word === 'object' ? word.map((each) => quote(String(each))).join(' ') : quote(String(word))
}

/** The arguments of a command: an array as it is, a string as a line for a shell. */
export function argvOf(command: string | readonly string[]): string[] {
  return typeof command === 'string' ? ['sh', '-c', command] : [...command]
}
