// Puts the values of secrets into the values of request headers. Pure. Names of headers, the request line and bodies are
// left as they are.

import { isLong } from './patterns.ts'
import type { Prepared } from './prepared.ts'

export type Header = [name: string, value: string]

export type Put =
  /**
   * `used`: the placeholders that were found. `sent`: the texts with a value that are not found by the value itself: of short
   * ones the whole header, and what follows `Basic`.
   */
  | { kind: 'put'; headers: Header[]; used: string[]; sent: string[] }
  /** A head that repeats placeholders can become far larger than it was. */
  | { kind: 'too_large' }

const MAX_HEAD_BYTES = 64 * 1024

export function putSecrets(headers: readonly Header[], prepared: Prepared): Put {
  const used = new Set<string>()
  const sent: string[] = []
  let left = MAX_HEAD_BYTES
  const valueOf = (placeholder: string): string => {
    const value = prepared.secrets.get(placeholder)?.value ?? ''
    used.add(placeholder)
    left -= value.length
    return left < 0 ? '' : value
  }
  const done = headers.map(([name, value]): Header => {
    const credentials = /^basic$/i.test(value.split(' ')[0] ?? '') ? basicOf(value) : null
    const text = credentials?.text ?? value
    let hasLong = false
    const replaced = text.replaceAll(prepared.placeholders, (placeholder) => {
      const into = valueOf(placeholder)
      hasLong ||= isLong(into)
      return into
    })
    if (replaced === text) return [name, value]
    if (credentials === null) {
      if (!hasLong) sent.push(replaced)
      return [name, replaced]
    }
    const encoded = base64(replaced)
    const whole = `${credentials.scheme} ${encoded}`
    sent.push(isLong(encoded) ? encoded : whole)
    return [name, whole]
  })
  return left < 0 ? { kind: 'too_large' } : { kind: 'put', headers: done, used: [...used], sent }
}

/** The user and password of RFC 7617, as bytes in latin1; null if there are none. */
function basicOf(value: string): { scheme: string; text: string } | null {
  const [, scheme = '', encoded = ''] = /^(basic) +([A-Za-z0-9+/_-]+=*) *$/i.exec(value) ?? []
  return encoded === '' ? null : { scheme, text: Buffer.from(encoded, 'base64').toString('latin1') }
}

function base64(text: string): string {
  return Buffer.from(text, 'latin1').toString('base64')
}
