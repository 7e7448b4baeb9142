// What an operator can see and enable: metrics and health of the real processes on their own addresses, payments, backups.

import { readFile, rm } from 'node:fs/promises'
import { beforeAll, expect, it } from 'vitest'
import type { Me } from '../../src/contract/me.ts'
import type { PaymentAnswer, PaymentList } from '../../src/contract/payment.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { logPathOf } from '../../src/lib/log.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { eventually, IMAGES_DIR } from '../support/berth.ts'
import { createUnit, destroyAll, exec } from '../support/berth-units.ts'
import { cleanHost } from '../support/host-state.ts'
import { unitOf } from '../support/published.ts'
import { type FakeStripe, signedEvent, startStripe } from '../support/stripe.ts'
import { useBerth } from '../support/use-berth.ts'

let stripe: FakeStripe
let ports: { server: number; gateway: number }
beforeAll(async () => {
  stripe = await startStripe()
  ports = { server: await freePort('127.0.0.1'), gateway: await freePort('127.0.0.1') }
  return () => stripe.close()
})

const berth = useBerth(() => ({
  BERTH_METRICS: `127.0.0.1:${ports.server}`,
  BERTH_GATEWAY_METRICS: `127.0.0.1:${ports.gateway}`,
  BERTH_STRIPE_SECRET_KEY: stripe.settings.secretKey,
  BERTH_STRIPE_WEBHOOK_SECRET: stripe.settings.webhookSecret,
  BERTH_STRIPE_URL: stripe.settings.url,
}))

const read = async (port: number, path: string) => await fetch(`http://127.0.0.1:${port}${path}`)
const scrape = async (port: number) => await (await read(port, '/metrics')).text()

it('server and gateway report health and metrics of past operations', async () => {
  await createUnit(berth, { name: 'web', image: 'berth.local/debian:12' })
  await eventually(async () => expect((await read(ports.server, '/healthz')).status).toBe(200))
  const server = await scrape(ports.server)
  expect(server).toMatch(/^berth_unit_operation_seconds_count\{operation="create",.*result="success"\} 1$/m)
  expect(server).toMatch(/^berth_engine_up 1$/m)
  expect(server).toMatch(/^berth_database_up 1$/m)
  expect(server).not.toMatch(/team_0|unit_0/)
  expect(await scrape(ports.gateway)).toMatch(/^berth_gateway_connections 0$/m)
  expect((await fetch(`${berth.credentials.baseUrl}/metrics`)).status).toBe(404)
})

it('a team can buy credits, and the log contains no secret of the payment provider', async () => {
  const { baseUrl, signInUrl } = berth.credentials
  const token = new URL(signInUrl).searchParams.get('token') ?? ''
  const signedIn = await fetch(`${baseUrl}/sign-in`, {
    method: 'POST',
    body: new URLSearchParams({ token }),
    headers: { origin: baseUrl },
    redirect: 'manual',
  })
  const cookie = (signedIn.headers.getSetCookie()[0] ?? '').split(';')[0] ?? ''
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { cookie, origin: baseUrl, 'content-type': 'application/json' }
    const sent = body ? { body: JSON.stringify(body) } : {}
    return (await (await fetch(baseUrl + path, { method, headers, ...sent })).json()) as T
  }
  const me = await ask<Me>('GET', '/v1/me')
  expect(me.payments).toBe(true)
  const path = `/v1/teams/${me.currentTeamId}/payments`
  const { payment } = await ask<PaymentAnswer>('POST', path, { amountCents: 1500 })
  const [session] = stripe.sessions
  if (!session) throw new Error('no checkout was made')
  expect(payment).toMatchObject({ state: 'open', checkoutUrl: session.url })

  stripe.pay(session)
  const { body, signature } = signedEvent('checkout.session.completed', session, { at: new Date() })
  const headers = { 'stripe-signature': signature, 'content-type': 'application/json' }
  expect((await fetch(`${baseUrl}/v1/webhooks/stripe`, { method: 'POST', body, headers })).status).toBe(200)
  await eventually(async () => {
    const { payments } = await ask<PaymentList>('GET', path)
    expect(payments).toMatchObject([{ id: payment.id, state: 'paid' }])
  })
  const after = await ask<Me>('GET', '/v1/me')
  const balance = ({ teams }: Me) => teams[0]?.creditBalanceCents ?? 0
  expect(balance(after) - balance(me)).toBeGreaterThan(1499)
  expect(await readFile(logPathOf(berth.dataDir), 'utf8')).not.toMatch(/sk_test|whsec_/)
})

it('a backup taken next to a running unit restores the unit with its disk and secrets after a total loss', async () => {
  const made = await createUnit(berth, {
    name: 'kept',
    image: 'berth.local/debian:12',
    size: 'nano',
    volume: { mount: '/data', gb: 1 },
    env: { WORD: 'a secret' },
  })
  const write = async (text: string) =>
    await exec(berth, made, ['sh', '-c', `echo ${text} | tee /root/kept > /data/kept`])
  await write('before')
  const npm = async (...args: string[]) =>
    await runOrThrow('npm', ['run', '--silent', ...args], {
      timeoutMs: 120_000,
      env: {
        ...process.env,
        BERTH_DATA_DIR: berth.dataDir,
        BERTH_IMAGES_DIR: IMAGES_DIR,
        BERTH_POOL_GB: '16',
      },
    })
  const backup = `${berth.dataDir}-backup`
  await npm('backup', '--', backup)
  await write('after')
  await expect(npm('restore', '--', backup)).rejects.toThrow('is not empty')

  await destroyAll(berth)
  expect(await berth.pressCtrlC()).toBe(0)
  await eventually(async () => expect(await berth.hostState()).toEqual(cleanHost))
  await rm(berth.dataDir, { recursive: true })
  await npm('restore', '--', backup)
  await rm(backup, { recursive: true })
  await berth.start()

  const unit = await unitOf(berth, made)
  expect(unit).toMatchObject({ state: 'sleeping', stoppedReason: 'provider' })
  const read = await exec(berth, made, ['sh', '-c', 'cat /root/kept /data/kept; echo $WORD'])
  expect(read.stdout).toBe('before\nbefore\na secret\n')
})
