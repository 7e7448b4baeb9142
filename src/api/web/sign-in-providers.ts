// Signing in with a provider: a button sends the browser to the provider, which sends it back by GET, as OAuth
// requires. The answer must match a cookie of this browser (domain/providers/oauth-state.ts), so other sites cannot
// use it to sign a visitor in.

import { type Provider, providers } from '../../contract/me.ts'
import { OAUTH_STATE_LIFETIME_MS } from '../../domain/providers/oauth-state.ts'
import { beginProviderSignIn } from '../../domain/providers/begin.ts'
import { finishProviderSignIn } from '../../domain/providers/finish.ts'
import { setCookie } from '../http/cookies.ts'
import { escapeHtml, htmlPage } from './html.ts'
import { type Page, refuseForeignPages } from './page.ts'
import { signedIn } from './signed-in.ts'

export const providerNames = { github: 'GitHub', google: 'Google' } as const satisfies Record<
  Provider,
  string
>

const begin = (provider: Provider): Page => ({
  method: 'POST',
  path: `/sign-in/${provider}`,
  answer: async (app, request) => {
    refuseForeignPages(request)
    const { url, token } = await beginProviderSignIn(app, { provider, peer: request.peer })
    // Not a redirect: browsers follow a form's redirect only to where `form-action` allows, and the provider may
    // redirect further.
    const markup = `<p><a href="${escapeHtml(url)}">Continue to ${providerNames[provider]}</a></p>`
    return {
      status: 200,
      html: htmlPage(`Sign in with ${providerNames[provider]}`, markup, { goTo: url }),
      headers: { 'set-cookie': setCookie('provider', token, OAUTH_STATE_LIFETIME_MS, app.config.publicUrl) },
    }
  },
})

const finish = (provider: Provider): Page => ({
  method: 'GET',
  path: `/sign-in/${provider}`,
  answer: async (app, request) => {
    const { token } = await finishProviderSignIn(app, {
      provider,
      token: request.providerToken ?? '',
      answer: request.query,
    })
    return await signedIn(app, request, token)
  },
})

export const providerPages: readonly Page[] = providers.flatMap((provider) => [
  begin(provider),
  finish(provider),
])
