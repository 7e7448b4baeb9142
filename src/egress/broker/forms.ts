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

type Write = (value: string) => string

/** Of a text, each of these characters is written in another way. */
function escaping(characters: RegExp, escape: (character: string) => string): Write {
  return (value) => value.replaceAll(characters, escape)
}

const hex = (character: string) => character.charCodeAt(0).toString(16)
const json: Write = (value) => JSON.stringify(value).slice(1, -1)

const jsons: Write[] = [
  json,
  // As PHP does.
  (value) => json(value).replaceAll('/', '\\/'),
  // Go and Gson, for pages.
  ...[/[<>&]/g, /[<>&=']/g].map((also): Write => {
    const escape = escaping(also, (character) => `\\u00${hex(character)}`)
    return (value) => escape(json(value))
  }),
  // .NET.
  (value) =>
    escaping(
      /["<>&'+`]/g,
      (character) => `\\u00${hex(character).toUpperCase()}`,
    )(value.replaceAll('\\', '\\\\')),
]

/** What each leaves as it is. */
const percentEscapes: Write[] = [
  // Of RFC 3986, of JavaScript, of Python, and of forms.
  ...[/[^A-Za-z0-9\-_.~]/g, /[^A-Za-z0-9\-_.~!'()*]/g, /[^A-Za-z0-9\-_.~/]/g].map((others) =>
    escaping(others, (character) => `%${hex(character).toUpperCase()}`),
  ),
  (value) => new URLSearchParams({ '': value }).toString().slice(1),
]
const percents = percentEscapes.flatMap((write): Write[] => [
  write,
  (value) => write(value).replaceAll(/%[0-9A-F]{2}/g, (escaped) => escaped.toLowerCase()),
])

/** The character references of each. */
const htmls = [
  { '"': '&quot;' },
  { '"': '&quot;', "'": '&#39;' },
  { '"': '&quot;', "'": '&#x27;' },
  // Go, and the templates that are safe in attributes without quotes.
  { '"': '&#34;', "'": '&#39;' },
  { '"': '&quot;', "'": '&#39;', '/': '&#x2F;', '=': '&#x3D;', '`': '&#x60;' },
].map((quotes): Write => {
  const references: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', ...quotes }
  return escaping(/[&<>"'/=`]/g, (character) => references[character] ?? character)
})

const written = [...jsons, ...percents, ...htmls]

/** The characters of base64 that say nothing of the text before and behind the value, for each place that it may begin at. */
function encodedIn(value: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bits = (before + value.length) * 8
    const encoded = Buffer.from(`${'\0'.repeat(before)}${value}`, 'latin1').toString('base64')
    const own = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6))
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
