// The forms in which an answer may have the value of a secret: as it was sent, and as programs write text into JSON, HTML, a
// URL or base64 (decision 171). Pure.

/** Shorter ones are words that answers may have for other reasons. */
const FORM_MIN_LENGTH = 16

/** `values`: visible ASCII. `sent`: the texts that a value was sent in, by which short ones are found too. */
export function formsOf(values: readonly string[], sent: readonly string[]): string[] {
  const long = values.filter(isLong)
  const forms = long.flatMap((value) => [value, ...written.map((write) => write(value)), ...encodedIn(value)])
  const exact = [...long, ...sent.filter(isLong)]
  // Within some others there is one already.
  const others = exact.filter((text) => !exact.some((other) => other !== text && text.includes(other)))
  return [...new Set([...forms, ...others])]
}

function isLong({ length }: string): boolean {
  return length >= FORM_MIN_LENGTH
}

/** Of a text, each of these characters is written in another way. */
function escaping(characters: RegExp, escape: (character: string) => string): (value: string) => string {
  return (value) => value.replaceAll(characters, escape)
}

const hex = (character: string) => character.charCodeAt(0).toString(16)
const json = (value: string) => JSON.stringify(value).slice(1, -1)
const percent = escaping(/[^A-Za-z0-9\-_.~]/g, (character) => `%${hex(character).toUpperCase()}`)
const html = escaping(/[&<>"]/g, (character) => htmlNames[character] ?? character)

const htmlNames: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

const written: readonly ((value: string) => string)[] = [
  json,
  // As PHP does, and as Go and Gson do for pages.
  (value) => json(value).replaceAll('/', '\\/'),
  (value) => escaping(/[<>&]/g, (character) => `\\u00${hex(character)}`)(json(value)),
  (value) => escaping(/[<>&='+]/g, (character) => `\\u00${hex(character)}`)(json(value)),
  percent,
  (value) => percent(value).replaceAll(/%[0-9A-F]{2}/g, (escaped) => escaped.toLowerCase()),
  html,
  (value) => html(value).replaceAll("'", '&#39;'),
  (value) => html(value).replaceAll("'", '&#x27;'),
]

/** The characters of base64 that say nothing of the text before and behind the value, for each place that it may begin at. */
function encodedIn(value: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bits = (before + value.length) * 8
    const encoded = Buffer.from(`${'\0'.repeat(before)}${value}`, 'latin1').toString('base64')
    const own = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6))
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
