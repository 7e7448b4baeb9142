import { once } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maskOf } from './mask.ts'

const VALUE = 'sk-0123456789abcdef'
const LONGER = 'ghp_0123456789abcdefghijklmnop'
const atOnce = () => null
const base64 = (text: string) => Buffer.from(text).toString('base64')
const stars = (value: string) => '*'.repeat(value.length)

async function masked(pieces: string[], ...values: string[]): Promise<string[]> {
  const stream = maskOf(values)?.stream(atOnce)
  if (!stream) return pieces
  const read: string[] = []
  stream.on('data', (chunk: Buffer) => read.push(chunk.toString('latin1')))
  for (const piece of pieces) stream.write(Buffer.from(piece, 'latin1'))
  stream.end()
  await once(stream, 'end')
  return read
}

/** Each place of the whole text is looked at by itself. */
function maskedSlowly(text: string, values: string[]): string {
  const result = text.split('')
  for (const value of values)
    for (let at = 0; at < text.length; at += 1)
      if (text.startsWith(value, at)) result.fill('*', at, at + value.length)
  return result.join('')
}

/** Pieces that end at these places. */
function cut(text: string, places: number[]): string[] {
  const at = [0, ...places.toSorted((one, other) => one - other), text.length]
  return at.slice(1).map((end, index) => text.slice(at[index], end))
}

describe('an answer', () => {
  test('has asterisks in place of values of few different characters, however they overlap and it is cut', async () => {
    const letters = (minLength: number, maxLength: number) =>
      fc.string({ unit: fc.constantFrom('a', 'b'), minLength, maxLength })
    const values = fc.array(letters(16, 20), { minLength: 1, maxLength: 3 })
    const given = values.chain((chosen) => {
      const part = fc
        .constantFrom(...chosen)
        .chain((value) =>
          fc.tuple(fc.nat(value.length), fc.nat(value.length)).map(([from, to]) => value.slice(from, to)),
        )
      const text = fc.array(fc.oneof(fc.constantFrom(...chosen), part, letters(0, 30)), { maxLength: 12 })
      return fc.tuple(fc.constant(chosen), text, fc.array(fc.nat(200), { maxLength: 20 }))
    })
    await fc.assert(
      fc.asyncProperty(given, async ([chosen, parts, places]) => {
        const text = parts.join('')
        const within = places.map((place) => Math.min(place, text.length))
        const expected = maskedSlowly(text, chosen)
        expect((await masked(cut(text, within), ...chosen)).join('')).toBe(expected)
        expect(maskOf(chosen)?.text(text)).toBe(expected)
      }),
      { numRuns: 500 },
    )
  })

  test('has asterisks in place of the whole of a value that begins as another one does', async () => {
    const longer = `${VALUE}-and-more`
    const pieces = [`x${VALUE}`, '-and-', 'more.', VALUE, '!']
    expect((await masked(pieces, VALUE, longer)).join('')).toBe(`x${stars(longer)}.${stars(VALUE)}!`)
  })

  test('has asterisks in place of a value in JSON, HTML, a URL and base64', async () => {
    const value = `p/a+s<s>w&o"r'd=\\1234567`
    const { stringify } = JSON
    const spellings = [
      value,
      stringify(value).slice(1, -1),
      stringify(value).slice(1, -1).replaceAll('/', '\\/'),
      encodeURIComponent(value).replaceAll("'", '%27'),
      encodeURIComponent(value)
        .replaceAll("'", '%27')
        .replaceAll(/%../g, (each) => each.toLowerCase()),
      encodeURIComponent(value),
      encodeURIComponent(value).replaceAll('%2F', '/').replaceAll("'", '%27'),
      'p/a+s&lt;s&gt;w&amp;o&quot;r&#39;d=\\1234567',
      'p/a+s&lt;s&gt;w&amp;o&#34;r&#39;d=\\1234567',
      'p&#x2F;a+s&lt;s&gt;w&amp;o&quot;r&#39;d&#x3D;\\1234567',
      'p/a\\u002Bs\\u003Cs\\u003Ew\\u0026o\\u0022r\\u0027d=\\\\1234567',
      'p/a+s\\u003cs\\u003ew\\u0026o\\"r\\u0027d\\u003d\\\\1234567',
      'p/a+s\\u003cs\\u003ew\\u0026o\\"r\'d=\\\\1234567',
    ]
    for (const each of [...spellings, new URLSearchParams({ value }).toString().slice('value='.length)])
      expect((await masked([`<${each}>`], value)).join('')).toBe(`<${stars(each)}>`)
  })

  test.each(['', 'a', 'us', 'user:', 'someone@example.com:'])(
    'has asterisks in place of a value in base64 behind "%s"',
    async (before) => {
      for (const encoding of ['base64', 'base64url'] as const) {
        const encoded = Buffer.from(`${before}${LONGER}:behind`).toString(encoding)
        const [answer = ''] = await masked([encoded], LONGER)
        // At its ends the value shares a character with its neighbours.
        const shown = Buffer.from(answer.replaceAll('*', 'A'), encoding).toString('latin1')
        expect(shown).toContain(before)
        for (let at = 0; at + 3 <= LONGER.length; at += 1)
          expect(shown).not.toContain(LONGER.slice(at, at + 3))
      }
    },
  )

  const value = `p/a+s<s>w&o"r'd=%\\1234567`
  const byteWise = (write: (code: number) => string) =>
    Array.from(value, (each) => write(each.charCodeAt(0))).join('')
  const hex = (code: number) => code.toString(16).padStart(2, '0')
  const inJson = (text: string) => JSON.stringify(text).slice(1, -1)
  const inUrl = (text: string) => encodeURIComponent(text).replaceAll("'", '%27')
  const inHtml = (text: string) => text.replaceAll(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`)
  const inNames = (text: string) =>
    text.replaceAll(
      /[&<>"'/=+]/g,
      (each) =>
        ({
          '&': '&amp;',
          '<': '&lt;',
          '>': '&gt;',
          '"': '&quot;',
          "'": '&apos;',
          '/': '&sol;',
          '=': '&equals;',
          '+': '&plus;',
        })[each] ?? each,
    )
  const quoted = value.replaceAll('=', '=3D')

  test.each([
    ['hexadecimal', byteWise(hex)],
    ['hexadecimal of capitals', byteWise(hex).toUpperCase()],
    ['hexadecimal with colons', byteWise((code) => `${hex(code)}:`).slice(0, -1)],
    ['percent-encoding of every character', byteWise((code) => `%${hex(code)}`)],
    ['percent-encoding of lower case', inUrl(value).toLowerCase()],
    ['percent-encoding, twice', inUrl(inUrl(value))],
    ['escapes of every character', byteWise((code) => `\\u00${hex(code)}`)],
    ['escapes of every character with x', byteWise((code) => `\\x${hex(code)}`)],
    ['JSON within JSON', inJson(inJson(value))],
    ['JSON within a URL', inUrl(inJson(value))],
    ['percent-encoding within JSON', inJson(inUrl(value))],
    ['references of every character', byteWise((code) => `&#${code};`)],
    ['references by hexadecimal numbers of every character', byteWise((code) => `&#x${hex(code)};`)],
    ['references by name', inNames(value)],
    ['HTML, twice', inNames(inHtml(value))],
    ['HTML within JSON', inJson(inHtml(value))],
    ['HTML within a URL', inUrl(inNames(value))],
    ['quoted-printable', quoted],
    ['quoted-printable of lower case and of every character', byteWise((code) => `=${hex(code)}`)],
    ['quoted-printable with a soft line break', `${quoted.slice(0, 9)}=\r\n${quoted.slice(9)}`],
    ['a shell’s quotes', value.replaceAll(/[^A-Za-z0-9]/g, (each) => `\\${each}`)],
  ])('has asterisks in place of a value in %s, whole and byte by byte', async (_form, written) => {
    expect((await masked([`<${written}>`], value)).join('')).toBe(`<${stars(written)}>`)
    expect((await masked(`<${written}>`.split(''), value)).join('').replaceAll(/[^*]/g, '')).toHaveLength(
      written.length,
    )
  })

  const broken = (text: string, every: number, by: string) =>
    (text.match(new RegExp(`.{1,${every}}`, 'g')) ?? []).join(by)

  test.each([
    ['with line breaks, as in mail', (text: string) => broken(base64(text), 76, '\r\n')],
    ['with line breaks, as in PEM', (text: string) => broken(base64(text), 64, '\n')],
    ['with line breaks within JSON', (text: string) => broken(base64(text), 76, '\\r\\n')],
    ['within a URL', (text: string) => encodeURIComponent(base64(text))],
    ['twice', (text: string) => base64(base64(text))],
  ])('shows no three characters in a row of a value in base64 %s', async (_form, encode) => {
    const every = [...Array(80).keys()].map((length) => 'x'.repeat(length))
    for (const before of every) {
      const [answer = ''] = await masked([encode(`${before}${LONGER}:behind`)], LONGER)
      let shown = answer.replaceAll('*', 'A')
      shown = shown.includes('%') ? decodeURIComponent(shown) : shown.replaceAll(/\\r\\n|\r|\n/g, '')
      const once = Buffer.from(shown, 'base64').toString('latin1')
      const twice = Buffer.from(once, 'base64').toString('latin1')
      for (let at = 0; at + 4 <= LONGER.length; at += 1)
        for (const text of [once, twice]) expect(text).not.toContain(LONGER.slice(at, at + 4))
    }
  })

  test('has asterisks in place of a header that was sent with a short value', () => {
    const mask = maskOf(['hunter2'], ['Bearer hunter2-hunter2', 'hunter2'])
    expect(mask?.text('you sent Bearer hunter2-hunter2')).toBe('you sent **********************')
    expect(mask?.text('hunter2')).toBe('hunter2')
  })

  test('that has no value passes as it is, and no piece waits for the next one', async () => {
    const pieces = ['data: one\n\n', 'data: sk-\n\n', 'data: 0123456789abcdef\n\n']
    expect(await masked(pieces, VALUE)).toEqual(pieces)
  })

  test('whose end could be the beginning of a value is whole', async () => {
    expect((await masked(['a sk-01'], VALUE)).join('')).toBe('a sk-01')
  })

  test('whose message ends as a value begins goes on without a next one, and the rest of a value is covered', async () => {
    const stream = maskOf([VALUE])?.stream(atOnce)
    if (!stream) throw new Error('no mask')
    let read = ''
    stream.on('data', (chunk: Buffer) => (read += chunk.toString()))
    const until = async (text: string) => {
      while (read !== text) await once(stream, 'data')
    }
    stream.write('hello s')
    await until('hello s')
    stream.write('k-01')
    await until('hello sk-01')
    stream.write('23456789abcdef, sk-0123456789abcdef s')
    await until(`hello sk-01${'*'.repeat(14)}, ${stars(VALUE)} s`)
    stream.end('.')
    await once(stream, 'end')
    expect(read).toBe(`hello sk-01${'*'.repeat(14)}, ${stars(VALUE)} s.`)
  })

  test('has asterisks in its headers too', () => {
    expect(maskOf([VALUE])?.text(`Bearer ${VALUE}`)).toBe(`Bearer ${stars(VALUE)}`)
  })

  test('is covered whole where values could not be counted', async () => {
    const answer = await masked(['a'.repeat(100_000)], 'a'.repeat(16))
    expect(answer.join('')).toBe('*'.repeat(100_000))
  })

  test('is not looked at for a value that may be an ordinary word', () => {
    expect(maskOf(['password'])).toBeNull()
  })
})
