// A new installation has no mail server: mails are files that only the operator can read.

import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { getAccount } from '../../src/lib/system-users.ts'
import { logPathOf } from '../../src/lib/log.ts'
import { eventually } from '../support/berth.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth()

it('a requested sign-in link is written to a file of the server and signs the person in', async () => {
  const { baseUrl } = berth.credentials
  const post = async (path: string, fields: Record<string, string>) =>
    await fetch(baseUrl + path, {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers: { origin: baseUrl },
      redirect: 'manual',
    })
  expect((await post('/sign-in/link', { email: 'ann@example.test' })).status).toBe(200)

  const folder = join(berth.dataDir, 'mail')
  const [file = ''] = await eventually(async () => {
    const files = await readdir(folder)
    expect(files).toEqual([expect.stringMatching(/^mail_[0-9a-f]{32}\.eml$/)])
    return files
  })
  const { uid } = await getAccount('berth')
  const [ofFolder, ofFile] = [await stat(folder), await stat(join(folder, file))]
  expect([ofFolder.uid, ofFolder.mode & 0o777, ofFile.uid, ofFile.mode & 0o777]).toEqual([
    uid,
    0o700,
    uid,
    0o600,
  ])

  const mail = (await readFile(join(folder, file), 'utf8')).replace(/=\r?\n/g, '').replaceAll('=3D', '=')
  const token = /sign-in\?token=(\S+)/.exec(mail)?.[1] ?? ''
  const signedIn = await post('/sign-in', { token })
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/'])

  const log = await readFile(logPathOf(berth.dataDir), 'utf8')
  expect(log).toContain(join(folder, file))
  expect(log).not.toContain(token)
  expect(log).not.toContain('ann@example.test')
})
