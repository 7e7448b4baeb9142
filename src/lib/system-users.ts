// The system users that Berth's processes run as. The set-up creates them (scripts/setup.sh), each with a group of
// the same name.

import { readFile } from 'node:fs/promises'

export type AccountName = 'berth' | 'berth-gateway' | 'berth-egress' | 'berth-postgres' | 'berth-images'
export type Account = { name: AccountName; uid: number; gid: number }

/** Throws a sentence if the set-up has not created the user. */
export async function getAccount(name: AccountName): Promise<Account> {
  for (const line of (await readFile('/etc/passwd', 'utf8')).split('\n')) {
    const [user, , uid, gid] = line.split(':')
    if (user === name) return { name, uid: Number(uid), gid: Number(gid) }
  }
  throw new Error(`The system user ${name} is missing; run "npm run setup" as root.`)
}
