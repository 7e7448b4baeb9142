// URLs of files that are signed with the token of a sandbox: a client that has one may read or write that one file.

import { createHash, timingSafeEqual } from 'node:crypto'
import { type AppError, unauthorized } from '../../../contract/errors.ts'
import { toAppError } from '../../http/errors.ts'
import { unitTokens } from '../../../domain/credentials/unit-token.ts'
import type { App } from '../../../app.ts'
import { unitIdOf } from '../sandbox-id.ts'

/**
 * Returns the token that a URL was signed with; null if it is not signed, or by no token of this sandbox. Throws if its
 * time is over.
 */
export async function signerOf(
  app: App,
  { sandboxId, method, query }: { sandboxId: string; method: string; query: URLSearchParams },
): Promise<string | null> {
  const signature = query.get('signature')
  const unitId = unitIdOf(sandboxId)
  if (signature === null || unitId === null) return null
  const expiry = query.get('signature_expiration')
  const signed = [query.get('path') ?? '', method === 'GET' ? 'read' : 'write', query.get('username') ?? '']
  const tokens = await unitTokens(app, unitId)
  const token = tokens.find((each) =>
    isEqual(signature, signatureOf([...signed, each, ...(expiry === null ? [] : [expiry])])),
  )
  if (token !== undefined && expiry !== null && isOver(app, expiry))
    throw unauthorized('signature is already expired')
  return token ?? null
}

/** Clients compare what is said of a URL whose token is refused. */
export function asSigned(error: unknown, query: URLSearchParams): AppError {
  const known = toAppError(error)
  if (known.status !== 401) return known
  return unauthorized(query.has('signature') ? 'invalid signature' : 'missing signature query parameter')
}

/** As clients sign: path, what for, user, token and perhaps the end. */
export function signatureOf(parts: string[]): string {
  const digest = createHash('sha256').update(parts.join(':')).digest('base64')
  return `v1_${digest.replace(/=+$/, '')}`
}

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** In seconds since 1970. */
function isOver({ clock }: App, expiry: string): boolean {
  return !/^\d{1,12}$/.test(expiry) || Number(expiry) * 1000 < clock.now().getTime()
}
