import { expect, it } from 'vitest'
import { directoriesOf } from './directories.ts'

const all = async (cwd: string, user: string, home: string) =>
  await Array.fromAsync(directoriesOf(cwd, user, async () => home))

it('a command that names no directory begins at home, or at the root where there is none', async () => {
  expect(await all('', 'user', '/home/user')).toEqual(['/home/user', '/'])
  expect(await all('', 'user', '/srv/user')).toEqual(['/home/user', '/srv/user', '/'])
  expect(await all('', 'anna', '/home/anna')).toEqual(['/home/anna', '/'])
})

it('a directory that is named is the only one, from home where it is not absolute', async () => {
  expect(await all('/srv', 'user', '/home/user')).toEqual(['/srv'])
  expect(await all('app', 'anna', '/home/anna')).toEqual(['/home/anna/app'])
  expect(await all('~/app', 'root', '/root')).toEqual(['/root/app'])
})
