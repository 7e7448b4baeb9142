// Authenticates the caller. Addresses that send wrong credentials too often are refused before anything is looked
// up.

import { toAppError } from '../http/errors.ts'
import { isOurBearer } from '../../domain/credentials/authenticate.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import type { Gate, OperationRequest } from './call.ts'

/** Throws `unauthorized`, or `rate_limited` after too many failures of the same address. */
export async function authenticateRequest(
  { authenticate, attempts }: Gate,
  { presented, peer }: Pick<OperationRequest, 'presented' | 'peer'>,
): Promise<Caller> {
  const shown = presented.ofUnit?.token ?? presented.authorization ?? presented.sessionToken ?? ''
  const refusal = attempts.refusalOf(peer, shown)
  // A key may be one that works and was not seen before; those that come together are looked up together.
  if (refusal && !isOurBearer(presented)) throw refusal
  try {
    const caller = await authenticate(presented)
    attempts.succeeded(shown, caller.credentialId)
    return caller
  } catch (error) {
    if (toAppError(error).status !== 401) throw error
    if (refusal) throw refusal
    attempts.failed(peer)
    throw error
  }
}
