// The cookie of a person's session. Scripts cannot read it, other sites' forms do not send it, and over
// HTTPS its name binds it to this very host, so that no sibling host can set one (design 7).

import { SECOND } from '../lib/clock.ts'

export function readSessionCookie(header: string | undefined, publicUrl: string): string | null {
  const name = cookieName(publicUrl)
  for (const part of (header ?? '').split(';')) {
    const [key, value] = part.trim().split('=', 2)
    if (key === name && value) return value
  }
  return null
}

export function sessionCookie(token: string, livesMs: number, publicUrl: string): string {
  const maxAge = Math.floor(livesMs / SECOND)
  return `${cookieName(publicUrl)}=${token}; Max-Age=${maxAge}; ${attributes(publicUrl)}`
}

export function expiredSessionCookie(publicUrl: string): string {
  return `${cookieName(publicUrl)}=; Max-Age=0; ${attributes(publicUrl)}`
}

function cookieName(publicUrl: string): string {
  return isHttps(publicUrl) ? '__Host-berth_session' : 'berth_session'
}

function attributes(publicUrl: string): string {
  return `Path=/; HttpOnly; SameSite=Lax${isHttps(publicUrl) ? '; Secure' : ''}`
}

function isHttps(publicUrl: string): boolean {
  return publicUrl.startsWith('https:')
}
