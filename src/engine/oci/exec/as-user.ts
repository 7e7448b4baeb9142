// Commands for another user than that of the machine's first process.

import type { MachineRef } from '../../engine.ts'
import type { EngineContext } from '../context.ts'
import type { Account } from '../runtime/bundle.ts'
import { userOfMachine } from './users.ts'

type Asked = { user?: string | undefined; env?: Record<string, string> | undefined }

/** The request with the account of its user, and with its home, as a login has it. Throws `unknown_user`. */
export async function asUser<T extends Asked>(
  host: EngineContext,
  ref: MachineRef,
  request: T,
): Promise<T & { account: Account | null }> {
  if (request.user === undefined) return { ...request, account: null }
  const account = await userOfMachine(host, ref, request.user)
  return { ...request, account, env: { HOME: account.home, ...request.env } }
}
