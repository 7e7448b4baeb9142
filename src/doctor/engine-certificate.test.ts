// What the doctor says of the certificate with which an engine answers over TLS, and of what signs such certificates.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { issueIdentity } from '../certificates/fleet-ca.ts'
import { DAY } from '../lib/clock.ts'
import { authorityFinding, engineCertificateFinding } from './engine-certificate.ts'

let directory: string
let certificateFile: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-engine-certificate-'))
  certificateFile = join(directory, 'east.pem')
  await writeFile(
    certificateFile,
    await issueIdentity(directory, { role: 'engine', host: 'east' }, new Date()),
  )
})
afterAll(async () => await rm(directory, { recursive: true }))

const findingIn = async (days: number, file = certificateFile) => {
  const role = 'host'
  const engineTls = { host: '10.0.0.2', port: 7075, certificateFile: file }
  return await engineCertificateFinding({ role, engineTls }, new Date(Date.now() + days * DAY))
}

it('a good certificate is said to be, with its end, two months before it is a warning, and then a fault', async () => {
  expect(await findingIn(0)).toMatchObject({
    state: 'ok',
    detail: expect.stringMatching(/^east at 10\.0\.0\.2:7075, .* until \d{4}-/),
  })
  expect(await findingIn(310)).toMatchObject({
    state: 'warn',
    advice: expect.stringContaining('npm run hosts'),
  })
  expect(await findingIn(366)).toMatchObject({
    state: 'fail',
    detail: expect.stringContaining('has expired'),
  })
})

it('a host that has not joined is told how, a file that holds no certificate is a fault, and no setting is none', async () => {
  expect(await findingIn(0, join(directory, 'no.pem'))).toMatchObject({
    state: 'warn',
    detail: 'this machine has not joined a Berth yet',
  })
  await writeFile(join(directory, 'bad.pem'), 'key')
  expect(await findingIn(0, join(directory, 'bad.pem'))).toMatchObject({
    detail: expect.stringContaining('It must hold a key'),
  })
  expect(await engineCertificateFinding({ role: 'all', engineTls: null }, new Date())).toMatchObject({
    state: 'ok',
  })
})

it('the authority of hosts is said with its end, from two years before it with what has to be done', async () => {
  const of = async (days: number, dataDir = directory) =>
    await authorityFinding({ dataDir }, new Date(Date.now() + days * DAY))
  const [year] = new Date(Date.now() + 3650 * DAY).toISOString().split('-')
  expect(await of(0)).toMatchObject({ state: 'ok', detail: expect.stringContaining(`until ${year}-`) })
  expect(await of(8 * 365)).toMatchObject({ state: 'warn', advice: expect.stringContaining('join again') })
  expect(await of(0, join(directory, 'none'))).toMatchObject({ state: 'ok' })
})
