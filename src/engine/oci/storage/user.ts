// Turns an image's `User` ("app", "1000:1000", "app:staff", "") into numbers, from the image's own passwd
// and group files. They are attacker input: read as if the image were `/`, and only to a bound.

import { EngineError } from '../../errors.ts'
import { readInTree } from '../kernel/unit-tree.ts'

export type User = { uid: number; gid: number; additionalGids: number[]; home: string }

const MAX_FILE_BYTES = 1024 * 1024
const MAX_ID = 2 ** 31 - 1

/** @param root the image's root directory, which no machine writes to */
export function resolveUser(root: string, user: string): User {
  const [name = '', group] = user === '' ? ['0'] : user.split(':')
  const accounts = readTable(root, '/etc/passwd')
  const groups = readTable(root, '/etc/group')
  const account = findAccount(accounts, name)
  const uid = parseId(account?.[2] ?? name, user)
  const gid = group === undefined ? parseId(account?.[3] ?? '0', user) : groupId(groups, group, user)
  return { uid, gid, additionalGids: groupsOf(account, groups, gid), home: homeOf(account) }
}

/** The rows of an `/etc/passwd` and an `/etc/group`. */
export type Accounts = { accounts: string[][]; groups: string[][] }

/** One of them, by its name or its number; null if there is none. */
export function findUser({ accounts, groups }: Accounts, name: string): (User & { name: string }) | null {
  const account = findAccount(accounts, name)
  const [uid, gid] = [idIn(account?.[2]), idIn(account?.[3])]
  if (!account || uid === null || gid === null) return null
  const additionalGids = groupsOf(account, groups, gid)
  return { name: account[0] ?? '', uid, gid, additionalGids, home: homeOf(account) }
}

/** Rows of a file of this kind. */
export function tableIn(content: string): string[][] {
  return content.split('\n').map((line) => line.split(':'))
}

function findAccount(accounts: string[][], name: string): string[] | undefined {
  return accounts.find((row) => row[0] === name) ?? accounts.find((row) => row[2] === name)
}

function groupsOf(account: string[] | undefined, groups: string[][], gid: number): number[] {
  return groups
    .filter((row) => account !== undefined && (row[3] ?? '').split(',').includes(account[0] ?? ''))
    .map((row) => Number(row[2]))
    .filter((id) => Number.isInteger(id) && id >= 0 && id <= MAX_ID && id !== gid)
    .slice(0, 64)
}

function homeOf(account: string[] | undefined): string {
  return account?.[5]?.startsWith('/') ? account[5] : '/'
}

/** Null for what is none. */
function idIn(text = ''): number | null {
  return /^\d{1,10}$/.test(text) && Number(text) <= MAX_ID ? Number(text) : null
}

function groupId(groups: string[][], group: string, user: string): number {
  return parseId(groups.find((row) => row[0] === group)?.[2] ?? group, user)
}

function parseId(text: string, user: string): number {
  const id = idIn(text)
  if (id === null) {
    throw new EngineError(
      'start_failed',
      `The image names the user "${user.slice(0, 64)}", which it does not have.`,
    )
  }
  return id
}

function readTable(root: string, path: string): string[][] {
  return tableIn(readInTree(root, path, MAX_FILE_BYTES)?.toString('utf8') ?? '')
}
