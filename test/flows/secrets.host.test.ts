// A brokered secret in the whole product (decisions/brokered-secrets.md), in a real container: what the unit is given, whom
// it trusts, and what its log says. No host answers here: requests with a value are in test/engine/secrets.host.test.ts.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { EgressLogPage } from '../../src/contract/egress-log.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { run } from '../../src/lib/process.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { processesHolding } from '../support/unit-memory.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth()
const VALUE = 'sk-live-0123456789abcdef'
const OTHER_VALUE = 'sk-live-fedcba9876543210'
const HOST = 'api.example.com'

/** Begins a connection by TLS to any address, with the name of a host. */
const ASK = `
import socket, ssl, sys
context = ssl.create_default_context()
with context.wrap_socket(socket.create_connection(('203.0.113.10', 443), 10), server_hostname=sys.argv[1]):
    pass
`

let unit: Unit

beforeAll(async () => {
  const put = await berth.call('PUT', '/v1/secrets/API_KEY', { value: VALUE, hosts: [HOST] })
  expect(put.status, JSON.stringify(put.body)).toBeLessThan(300)
  unit = await createUnit(berth, {
    name: 'agent',
    image: 'berth.local/python:3.11',
    env: { API_KEY: { teamSecret: 'API_KEY' } },
    egress: { mode: 'listed', allow: [HOST] },
  })
})

const environment = async (of: Unit) => (await exec(berth, of, ['env'])).stdout
const ask = async (host: string) => await exec(berth, unit, ['python3', '-c', ASK, host])

/** Host → why it was refused, as the log of the unit has it for connections. */
async function refusals(): Promise<Record<string, string | null>> {
  const { body } = await berth.call<EgressLogPage>('GET', `/v1/units/${unit.id}/egress/log?decision=refused`)
  const lines = body.lines.filter(({ port }) => port === 443)
  return Object.fromEntries(lines.map(({ host, reason }) => [host ?? '', reason]))
}

describe('a unit with a secret of its team', () => {
  it('has a placeholder instead of the value, in its environment and in every answer', async () => {
    expect(await environment(unit)).toMatch(/^API_KEY=berth_secret_\S+$/m)
    const processes = await exec(berth, unit, ['sh', '-c', 'cat /proc/[0-9]*/environ'])
    const { body } = await berth.call('GET', `/v1/units/${unit.id}`)
    const listed = await berth.call('GET', '/v1/secrets')
    for (const text of [await environment(unit), processes.stdout, JSON.stringify([body, listed.body])])
      expect(text).not.toContain(VALUE)
    expect(JSON.stringify(listed.body)).toContain(HOST)
  })

  it('trusts the authority that signs for the hosts of its secrets, by a file that it cannot change', async () => {
    const file = /^SSL_CERT_FILE=(.*)$/m.exec(await environment(unit))?.[1] ?? ''
    const script = `import ssl, sys
for certificate in ssl.create_default_context(cafile=sys.argv[1]).get_ca_certs(): print(certificate['subject'])`
    expect((await exec(berth, unit, ['python3', '-c', script, file])).stdout).toContain(
      'Berth secrets of team',
    )
    expect((await exec(berth, unit, ['sh', '-c', `echo x >> ${file}`])).exitCode).not.toBe(0)
  })

  it('is let through to the host of the secret, and is told in the log that no address is known for it', async () => {
    expect((await ask(HOST)).stderr).toContain('ACCESS_DENIED')
    expect((await ask('other.example.com')).stderr).toContain('ACCESS_DENIED')
    await expect.poll(refusals, { timeout: 30_000, interval: 500 }).toEqual({
      [HOST]: expect.stringContaining('has no IPv4 address'),
      'other.example.com': expect.stringContaining('No entry of "allow" names'),
    })
  })

  it('keeps its placeholder while the value is replaced, and in a fork', async () => {
    const before = await environment(unit)
    const put = await berth.call('PUT', '/v1/secrets/API_KEY', { value: OTHER_VALUE, hosts: [HOST] })
    expect(put.status).toBe(200)
    const forked = await berth.call<{ units: Unit[] }>('POST', `/v1/units/${unit.id}/fork`, {})
    expect(forked.status, JSON.stringify(forked.body)).toBe(201)
    const [fork] = forked.body.units
    const placeholder = /^API_KEY=.*$/m.exec(before)?.[0]
    expect(await environment(fork as Unit)).toContain(placeholder)
    // What a copy has: its disk, its environment and, where the class keeps memory, the memory of the source.
    for (const { id } of [unit, fork as Unit]) {
      expect(await processesHolding(id, placeholder ?? '')).not.toEqual([])
      for (const value of [VALUE, OTHER_VALUE]) expect(await processesHolding(id, value)).toEqual([])
    }
  })

  it('has neither value on its disk, in its files or in what Berth keeps of its machine', async () => {
    const places = ['pool', 'machines'].map((name) => join(berth.dataDir, name))
    const finding = async (text: string) =>
      (await run('grep', ['-rlaF', '--', text, ...places], { timeoutMs: 60_000 })).stdout
    await exec(berth, unit, ['sh', '-c', 'printf "%s" "$API_KEY" > /root/kept; sync'])
    expect(await finding('berth_secret_')).toContain('/root/kept')
    for (const value of [VALUE, OTHER_VALUE]) expect(await finding(value)).toBe('')
  })

  it('leaves neither value in the logs of Berth', async () => {
    const log = await readFile(join(berth.dataDir, 'logs', 'berth.log'), 'utf8')
    expect(log).not.toContain(VALUE)
    expect(log).not.toContain(OTHER_VALUE)
  })

  it('runs on when the secret is deleted, without it in its environment from the next start on', async () => {
    expect((await berth.call('DELETE', '/v1/secrets/API_KEY')).status).toBeLessThan(300)
    expect(await berth.call('GET', `/v1/units/${unit.id}`)).toMatchObject({ body: { state: 'running' } })
    expect((await berth.call('POST', `/v1/units/${unit.id}/stop`, {})).status).toBe(200)
    expect((await berth.call('POST', `/v1/units/${unit.id}/start`, {})).status).toBe(200)
    expect(await environment(unit)).not.toContain('API_KEY=')
  })
})
