// Turns an image's `User` ("app", "1000:1000", "app:staff", "") into numbers, from the image's own passwd
// and group files. They are attacker input: read as if the image were `/`, and only to a bound.

import { EngineError } from '../../errors.ts'
import { readInTree } from './unit-tree.ts'

export type User = { uid: number; gid: number; additionalGids: number[]; home: string }

const MAX_FILE_BYTES = 1024 * 1024
const MAX_ID = 2 ** 31 - 1

/** @param root the image's root directory, which no machine writes to */
export function resolveUser(root: string, user: string): User {
  const [name = '', group] = user === '' ? ['0'] : user.split(':')
  const accounts = readTable(root, '/etc/passwd')
  const groups = readTable(root, '/etc/group')
  const account = accounts.find((row) => row[0] === name) ?? accounts.find((row) => row[2] === name)
  const uid = parseId(account?.[2] ?? name, user)
  const gid = group === undefined ? parseId(account?.[3] ?? '0', user) : groupId(groups, group, user)
  const additionalGids = groups
    .filter((row) => account !== undefined && (row[3] ?? '').split(',').includes(account[0] ?? ''))
    .map((row) => Number(row[2]))
    .filter((id) => Number.isInteger(id) && id >= 0 && id <= MAX_ID && id !== gid)
    .slice(0, 64)
  return { uid, gid, additionalGids, home: account?.[5]?.startsWith('/') ? account[5] : '/' }
}

function groupId(groups: string[][], group: string, user: string): number {
  return parseId(groups.find((row) => row[0] === group)?.[2] ?? group, user)
}

function parseId(text: string, user: string): number {
  const id = Number(text)
  if (!/^\d{1,10}$/.test(text) || id > MAX_ID) {
    throw new EngineError(
      'start_failed',
      `The image names the user "${user.slice(0, 64)}", which it does not have.`,
    )
  }
  return id
}

function readTable(root: string, path: string): string[][] {
  const content = readInTree(root, path, MAX_FILE_BYTES)?.toString('utf8') ?? ''
  return content.split('\n').map((line) => line.split(':'))
}
