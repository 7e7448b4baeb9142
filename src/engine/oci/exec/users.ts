// The accounts of a running machine, read by the helper inside of it (file-helper.ts): they are the machine's own word,
// and read to a bound.

import type { MachineRef } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { type EngineContext, getRunning, type Machine } from '../machine/context.ts'
import { type Accounts, findUser, tableIn, type User } from '../storage/user.ts'
import { readHelper } from './file-helper.ts'

/** Of each file. */
const ACCOUNTS_BYTES = 256 * 1024
/** As patient as the callers: the first look into a machine waits for it where the host is busy. */
const TIMEOUT_MS = 30_000

/** Says both files, each with a NUL behind it. */
export const SAY_ACCOUNTS = `for file in /etc/passwd /etc/group; do
  [ ! -f "$file" ] || head -c ${ACCOUNTS_BYTES} "$file"
  printf '\\0'
done`
/** At most so much is said. */
export const SAID_BYTES = 2 * ACCOUNTS_BYTES + 2

/** What `SAY_ACCOUNTS` said, and what comes behind it. */
export function accountsIn(said: Buffer): { accounts: Accounts; rest: Buffer } {
  const first = endOf(said, 0)
  const second = endOf(said, first + 1)
  const accounts = tableIn(said.toString('utf8', 0, first))
  const groups = tableIn(said.toString('utf8', first + 1, second))
  return { accounts: { accounts, groups }, rest: said.subarray(second + 1) }
}

type Named = User & { name: string }

/** Programs run many commands for one user: each look is a command of its own. */
const KNOWN_MS = 10_000
const MAX_KNOWN = 16
type Known = Map<string, { user: Promise<Named>; generation: number; atMs: number }>
const known = new WeakMap<Machine, Known>()

/** As it was looked up a moment ago, or is now, once for all that ask meanwhile. Throws `unknown_user`. */
export async function userOfMachine(host: EngineContext, ref: MachineRef, name: string): Promise<Named> {
  const machine = getRunning(host, ref)
  const users: Known = known.get(machine) ?? new Map()
  const found = users.get(name)
  const isRecent = found !== undefined && performance.now() - found.atMs < KNOWN_MS
  if (isRecent && found.generation === ref.generation) return await found.user
  const user = lookUp(host, ref, name)
  const looked = { user, generation: ref.generation, atMs: performance.now() }
  if (users.size >= MAX_KNOWN) users.clear()
  users.set(name, looked)
  known.set(machine, users)
  user.catch(() => {
    if (users.get(name) === looked) users.delete(name)
  })
  return await user
}

async function lookUp(host: EngineContext, ref: MachineRef, name: string): Promise<Named> {
  const { stdout } = await readHelper(host, ref, {
    script: `set -eu\n${SAY_ACCOUNTS}`,
    args: [],
    timeoutMs: TIMEOUT_MS,
    late: () => new EngineError('timeout', 'The accounts of the machine took too long to read.'),
    maxBytes: SAID_BYTES,
  })
  const user = findUser(accountsIn(stdout).accounts, name)
  if (user) return user
  throw new EngineError('unknown_user', `/etc/passwd of the unit has no user "${name}".`)
}

/** Names of numbers: the first that has one. */
export function namesIn({ accounts, groups }: Accounts): {
  owner: (uid: number) => string | null
  group: (gid: number) => string | null
} {
  const [users, groupNames] = [namesByNumber(accounts), namesByNumber(groups)]
  return { owner: (uid) => users.get(uid) ?? null, group: (gid) => groupNames.get(gid) ?? null }
}

const NAME_LENGTH = 64

function namesByNumber(rows: string[][]): Map<number, string> {
  const named = rows.flatMap(([name = '', , number = '']): [number, string][] =>
    /^\d{1,10}$/.test(number) && name !== '' ? [[Number(number), name.slice(0, NAME_LENGTH)]] : [],
  )
  return new Map(named.toReversed())
}

function endOf(said: Buffer, from: number): number {
  const end = said.indexOf(0, from)
  return end < 0 ? said.length : end
}
