// Commands for another user than that of the machine's first process.

import type { MachineRef } from '../../engine.ts'
import type { EngineContext } from '../machine/context.ts'
import type { Account } from '../runtime/bundle.ts'
import { userOfMachine } from './users.ts'

type Asked = { user?: string | undefined; env?: Record<string, string> | undefined }

/** The request with the account of its user, and with its home, as a login has it. Throws `unknown_user`. */
export async function asUser<T extends Asked>(
  host: EngineContext,
  ref: MachineRef,
  request: T,
): Promise<T & { account: Account | null }> {
  const account = await accountOf(host, ref, request.user)
  return account
    ? { ...request, account, env: { HOME: account.home, ...request.env } }
    : { ...request, account }
}

/** Null: no other user was asked for. Throws `unknown_user`. */
export async function accountOf(
  host: EngineContext,
  ref: MachineRef,
  user: string | undefined,
): Promise<Account | null> {
  return user === undefined ? null : await userOfMachine(host, ref, user)
}
