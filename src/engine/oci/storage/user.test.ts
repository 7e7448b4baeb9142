import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { resolveUser } from './user.ts'

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth-user-'))
  mkdirSync(join(root, 'etc'))
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\napp:x:1000:1001::/home/app:/bin/sh\n')
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nstaff:x:50:app,other\napp:x:1001:\n')
})
afterEach(() => rmSync(root, { recursive: true }))

it('resolveUser accepts names, numbers and both with a group', () => {
  expect(resolveUser(root, '')).toEqual({ uid: 0, gid: 0, additionalGids: [], home: '/root' })
  expect(resolveUser(root, 'app')).toEqual({ uid: 1000, gid: 1001, additionalGids: [50], home: '/home/app' })
  expect(resolveUser(root, '1000')).toEqual(resolveUser(root, 'app'))
  expect(resolveUser(root, '1234:staff')).toEqual({ uid: 1234, gid: 50, additionalGids: [], home: '/' })
})

it('resolveUser throws for a user that the image does not have', () => {
  expect(() => resolveUser(root, 'nobody')).toThrow(/"nobody"/)
  expect(() => resolveUser(root, '4294967296')).toThrow(/does not have/)
  expect(() => resolveUser(root, '-1')).toThrow(/does not have/)
})

it('resolveUser follows links in /etc/passwd only within the image', () => {
  rmSync(join(root, 'etc/passwd'))
  writeFileSync(join(root, 'mine'), 'app:x:7:7::/:/bin/sh\n')
  symlinkSync('/../../../../mine', join(root, 'etc/passwd'))
  expect(resolveUser(root, 'app').uid).toBe(7)
  rmSync(join(root, 'etc/passwd'))
  symlinkSync('/proc/self/root/etc/passwd', join(root, 'etc/passwd'))
  expect(() => resolveUser(root, 'daemon')).toThrow(/does not have/)
})
