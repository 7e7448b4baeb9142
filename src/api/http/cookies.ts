// The cookies of a browser: of its session, of a sign-in with a provider that is in progress, and of a program that
// waits for the person to sign in. Scripts cannot read them, and forms of other sites do not send them. Over HTTPS
// their names bind them to this host, so that no sibling host can set one (design 7).

import { SECOND } from '../../lib/clock.ts'

const names = { session: 'berth_session', provider: 'berth_provider', consent: 'berth_consent' } as const
type Cookie = keyof typeof names

export function readCookie(header: string | undefined, cookie: Cookie, publicUrl: string): string | null {
  const name = nameOf(cookie, publicUrl)
  for (const part of (header ?? '').split(';')) {
    const [key, value] = part.trim().split('=', 2)
    if (key === name && value) return value
  }
  return null
}

export function setCookie(cookie: Cookie, token: string, livesMs: number, publicUrl: string): string {
  const maxAge = Math.floor(livesMs / SECOND)
  return `${nameOf(cookie, publicUrl)}=${token}; Max-Age=${maxAge}; ${attributes(publicUrl)}`
}

export function dropCookie(cookie: Cookie, publicUrl: string): string {
  return `${nameOf(cookie, publicUrl)}=; Max-Age=0; ${attributes(publicUrl)}`
}

function nameOf(cookie: Cookie, publicUrl: string): string {
  return isHttps(publicUrl) ? `__Host-${names[cookie]}` : names[cookie]
}

function attributes(publicUrl: string): string {
  return `Path=/; HttpOnly; SameSite=Lax${isHttps(publicUrl) ? '; Secure' : ''}`
}

function isHttps(publicUrl: string): boolean {
  return publicUrl.startsWith('https:')
}
