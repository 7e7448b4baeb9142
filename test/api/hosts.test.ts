// The hosts that the API answers to (reliability S19). A name that a foreign DNS points here is none of them.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { sendRaw } from '../support/raw-http.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
beforeAll(async () => {
  service = await startService({
    publicUrl: 'https://berth.example.com',
    apiHosts: ['api', 'berth.internal'],
  })
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

async function statusOf(hostLines: string, { version = '1.1', target = '/v1/units', key = team.key } = {}) {
  const answer = await sendRaw(
    Number(new URL(service.baseUrl).port),
    `GET ${target} HTTP/${version}\r\n${hostLines}authorization: Bearer ${key}\r\nconnection: close\r\n\r\n`,
  )
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]), answer }
}

describe('a call is served', () => {
  it.each([
    'berth.example.com',
    'BERTH.Example.com:443',
    'berth.example.com.',
    'api:7070',
    'berth.internal',
    'localhost:7070',
    '127.0.0.1',
    '127.0.0.1:1',
  ])('when its host is %s', async (host) => {
    expect((await statusOf(`host: ${host}\r\n`)).status).toBe(200)
  })

  it('a call that names no host is served, as health checks in HTTP/1.0 need', async () => {
    expect((await statusOf('', { version: '1.0' })).status).toBe(200)
  })
})

describe('a call is refused with 421 before anything else of it is read', () => {
  it.each([
    'evil.example.net',
    'evil.example.net:7070',
    'berth.example.com.evil.net',
    'xberth.example.com',
    'unit-0123456789.berth.localhost',
    'localhost.evil.net',
    '127.0.0.2',
    '127.0.0.1.nip.io',
    '2130706433',
    '0.0.0.0',
    '[::1]',
    'berth.example.com@evil.net',
    'berth.example.com:443:80',
    'berth.example.com, evil.net',
    '',
  ])('when its host is "%s"', async (host) => {
    const { status, answer } = await statusOf(`host: ${host}\r\n`)
    expect(status).toBe(421)
    expect(answer).toContain('"code":"misdirected_request"')
    expect(answer).toContain('https://berth.example.com')
    if (host !== '') expect(answer).not.toContain(`"${host}"`)
  })

  it('a call that names two hosts is refused with 400 or 421', async () => {
    expect([400, 421]).toContain(
      (await statusOf('host: berth.example.com\r\nhost: evil.example.net\r\n')).status,
    )
  })

  it('calls of unknown paths, of pages and without a credential are refused with 421 too', async () => {
    for (const target of [
      '/',
      '/v1/nothing',
      '/sign-in',
      '/v1/openapi.json',
      'http://berth.example.com/v1/units',
    ]) {
      expect((await statusOf('host: evil.example.net\r\n', { target, key: 'wrong' })).status).toBe(421)
    }
  })
})
