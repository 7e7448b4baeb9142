// What is read as a plain response, and how its body is taken apart.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBodyReader, type Framing, parsePlainHead } from './plain-response.ts'

const parse = (...lines: string[]) =>
  parsePlainHead(`${lines.join('\r\n')}\r\n`, { keptMs: 4000, isHead: false })
const LENGTH = 'Content-Length: 3'

describe('a head is plain', () => {
  it('with a length, and its headers stay as they came', () => {
    expect(parse('HTTP/1.1 200 OK', 'X-A: \t b c \t', 'x-a:', LENGTH)).toEqual({
      status: 200,
      reason: 'OK',
      rawHeaders: ['X-A', 'b c', 'x-a', '', 'Content-Length', '3'],
      framing: { kind: 'length', bytes: 3 },
      keptMs: 4000,
    })
  })

  it('with chunks', () => {
    expect(parse('HTTP/1.1 404', 'transfer-encoding: Chunked')?.framing).toEqual({ kind: 'chunked' })
  })

  it.each([204, 304])('without a body for the status %i', (status) => {
    expect(parse(`HTTP/1.1 ${status} X`, LENGTH)?.framing).toEqual({ kind: 'length', bytes: 0 })
  })

  it('without a body if it answers HEAD', () => {
    const text = 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n'
    const none = { kind: 'length', bytes: 0 }
    expect(parsePlainHead(text, { keptMs: 4000, isHead: true })?.framing).toEqual(none)
    expect(parsePlainHead('HTTP/1.1 200 OK\r\n', { keptMs: 4000, isHead: true })?.framing).toEqual(none)
  })

  it.each<[string, string[], number]>([
    ['says so', ['HTTP/1.1 200 OK', 'Connection: Keep-Alive, Close', LENGTH], 0],
    ['speaks HTTP/1.0', ['HTTP/1.0 200 OK', LENGTH], 0],
    ['keeps it for a second', ['HTTP/1.1 200 OK', 'Keep-Alive: timeout=1', LENGTH], 0],
    ['keeps it for three seconds', ['HTTP/1.1 200 OK', 'Keep-Alive: max=9, timeout=3', LENGTH], 2000],
  ])('and its connection is kept for no longer than its server keeps it: it %s', (_what, lines, keptMs) => {
    expect(parse(...lines)?.keptMs).toBe(keptMs)
  })
})

describe('a head is left to Node’s parser', () => {
  it.each<[string, string[]]>([
    ['informs only', ['HTTP/1.1 103 Early Hints', LENGTH]],
    ['switches protocols', ['HTTP/1.1 101 Switching', 'Upgrade: x', LENGTH]],
    ['has no status', ['HTTP/1.1 000 X', LENGTH]],
    ['has another version', ['HTTP/2.0 200 OK', LENGTH]],
    ['is not HTTP', ['SSH-2.0-OpenSSH_9.2']],
    ['has neither length nor chunks', ['HTTP/1.1 200 OK', 'x: y']],
    ['has a length and chunks', ['HTTP/1.1 200 OK', LENGTH, 'Transfer-Encoding: chunked']],
    ['has chunks and a length', ['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', LENGTH]],
    ['has two lengths', ['HTTP/1.1 200 OK', LENGTH, LENGTH]],
    ['has a signed length', ['HTTP/1.1 200 OK', 'Content-Length: +3']],
    ['has an empty length', ['HTTP/1.1 200 OK', 'Content-Length:']],
    ['has a list of lengths', ['HTTP/1.1 200 OK', 'Content-Length: 3, 3']],
    ['has another coding', ['HTTP/1.1 200 OK', 'Transfer-Encoding: gzip, chunked']],
    ['has chunks twice', ['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    ['has chunks in HTTP/1.0', ['HTTP/1.0 200 OK', 'Transfer-Encoding: chunked']],
    ['has a folded header', ['HTTP/1.1 200 OK', 'X-A: b', ' c', LENGTH]],
    ['has a line without a colon', ['HTTP/1.1 200 OK', 'abc', LENGTH]],
    ['has a space before a colon', ['HTTP/1.1 200 OK', 'Content-Length : 3']],
    ['has a header without a name', ['HTTP/1.1 200 OK', ': b', LENGTH]],
    ['has a bare line feed', ['HTTP/1.1 200 OK', 'X-A: b\nSet-Cookie: c', LENGTH]],
    ['has a bare carriage return', ['HTTP/1.1 200 OK', 'X-A: b\rSet-Cookie: c', LENGTH]],
    ['has a zero byte', ['HTTP/1.1 200 OK', 'X-A: b\0c', LENGTH]],
  ])('that %s', (_what, lines) => {
    expect(parse(...lines)).toBeNull()
  })

  it('in a time that grows with its length, whatever it is made of', () => {
    const begunMs = performance.now()
    for (const filler of [' ', '\t', 'a', 'a:', ',timeout=', '\xe4 ']) {
      const text = filler.repeat(60_000 / filler.length)
      parse('HTTP/1.1 200 OK', `Keep-Alive:${text}\x01`, LENGTH)
      parse('HTTP/1.1 200 OK', `Keep-Alive:${text}`, LENGTH)
      parse(`HTTP/1.1 200${text}`, LENGTH)
      parse('HTTP/1.1 200 OK', text, LENGTH)
    }
    expect(performance.now() - begunMs).toBeLessThan(2000)
  })
})

type Read = { body: string; trailers: string[]; left: number; isDone: boolean } | 'malformed'

function readAll(framing: Framing, bytes: string, cuts: number[] = []): Read {
  const reader = createBodyReader(framing)
  const parts: Buffer[] = []
  const all = Buffer.from(bytes, 'latin1')
  const ends = [...new Set(cuts.map((cut) => Math.min(cut, all.length)))].sort((a, b) => a - b)
  let at = 0
  for (const end of [...ends, all.length]) {
    if (reader.isDone) break
    const read = reader.read(all.subarray(at, end), { onBody: (part) => parts.push(part) })
    if (read === null) return 'malformed'
    at += read
  }
  const body = Buffer.concat(parts).toString('latin1')
  return { body, trailers: reader.rawTrailers, left: all.length - at, isDone: reader.isDone }
}

describe('a body', () => {
  it('ends after its length, and what follows is not its own', () => {
    expect(readAll({ kind: 'length', bytes: 3 }, 'abcdef')).toMatchObject({
      body: 'abc',
      left: 3,
      isDone: true,
    })
  })

  it('in chunks is the same wherever it is cut', () => {
    const bytes = '3\r\nabc\r\n0A;x=y\r\n0123\r\n6789\r\n0\r\nChecksum: x\r\n\r\nmore'
    const whole = { body: 'abc0123\r\n6789', trailers: ['Checksum', 'x'], isDone: true }
    expect(readAll({ kind: 'chunked' }, bytes)).toEqual({ ...whole, left: 4 })
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
        expect(readAll({ kind: 'chunked' }, bytes, cuts)).toMatchObject(whole)
      }),
    )
  })

  it.each<[string, string]>([
    ['a bare line feed', '3\nabc\r\n0\r\n\r\n'],
    ['a size with a prefix', '0x3\r\nabc\r\n0\r\n\r\n'],
    ['a size with a space', '3 \r\nabc\r\n0\r\n\r\n'],
    ['no size', '\r\nabc\r\n0\r\n\r\n'],
    ['a huge size', '100000000\r\nabc'],
    ['a chunk that is longer than it says', '3\r\nabcdef\r\n0\r\n\r\n'],
    ['a trailer that is none', '0\r\nabc\r\n\r\n'],
    ['a line that does not end', 'a'.repeat(5000)],
    ['trailers without end', `0\r\n${'a: b\r\n'.repeat(5000)}`],
  ])('in chunks with %s is malformed', (_what, bytes) => {
    expect(readAll({ kind: 'chunked' }, bytes)).toBe('malformed')
  })

  it('of any bytes comes to the same wherever it is cut', () => {
    const bytes = fc.stringMatching(/^[0-3a;\r\n\0x ]{0,60}$/)
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(60)), (text, cuts) => {
        expect(readAll({ kind: 'chunked' }, text, cuts)).toEqual(readAll({ kind: 'chunked' }, text))
      }),
    )
  })
})
