import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDomain, type TestDomain } from '../../../test/support/domain.ts'
import { DAY, MINUTE } from '../../lib/clock.ts'
import { createSignInLink, readSignInLink } from '../credentials/sign-in.ts'
import { saveOAuthState } from './oauth-state.ts'
import { forgetSignIns } from './forget.ts'

let domain: TestDomain
beforeAll(async () => {
  domain = await createTestDomain()
})
afterAll(async () => await domain.close())

it('sign-in links and states are deleted a day after they expire', async () => {
  const { app, clock } = domain
  const left = async () => [
    (await app.db.selectFrom('sign_in_links').select('prefix').execute()).length,
    (await app.db.selectFrom('provider_sign_ins').select('prefix').execute()).length,
  ]
  const link = await createSignInLink(app, 'ann@example.test')
  await saveOAuthState(app, app.db, 'google', { nonce: 'n', codeVerifier: 'v' })
  clock.advance(DAY - MINUTE)
  await forgetSignIns(app)
  expect(await readSignInLink(app, link.token)).toBe('ann@example.test')
  expect(await left()).toEqual([1, 1])
  clock.advance(12 * MINUTE)
  await forgetSignIns(app)
  expect(await left()).toEqual([1, 0])
  clock.advance(DAY)
  await forgetSignIns(app)
  expect(await left()).toEqual([0, 0])
})
