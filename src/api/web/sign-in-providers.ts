// Signing in with a provider: a button sends the browser there, and the provider sends it back. That it comes back by GET
// and signs somebody in is OAuth's way; what keeps other sites from using it is the cookie of this very
// browser that the answer has to fit (domain/providers/oauth-state.ts).

import { type Provider, providers } from '../../contract/me.ts'
import { OAUTH_STATE_LIFETIME_MS } from '../../domain/providers/oauth-state.ts'
import { beginProviderSignIn } from '../../domain/providers/begin.ts'
import { finishProviderSignIn } from '../../domain/providers/finish.ts'
import { setCookie } from './cookies.ts'
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
    // Not a redirect: of a form's answer browsers follow those alone that lead to where `form-action` allows, and
    // what a provider redirects to in turn is its own matter.
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
