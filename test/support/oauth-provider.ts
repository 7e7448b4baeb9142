// What a program gives its MCP client so that it signs in, and the person who agrees.

import { formOf, LOOPBACK, nextOf, openConsent, signedInBrowser } from './oauth.ts'
import type { Service } from './service.ts'

export type Kept = {
  client?: { client_id: string }
  tokens?: object
  found?: object
  verifier: string
  opened: URL[]
}

/** Where the client keeps what it learns, and how it opens a browser. */
export function providerOf(kept: Kept, clientMetadataUrl?: string) {
  return {
    redirectUrl: LOOPBACK,
    ...(clientMetadataUrl === undefined ? {} : { clientMetadataUrl }),
    clientMetadata: { client_name: 'Claude Code', redirect_uris: [LOOPBACK] },
    state: () => 'the state',
    clientInformation: () => kept.client as never,
    saveClientInformation: (client: { client_id: string }) => void (kept.client = client),
    tokens: () => kept.tokens as never,
    saveTokens: (tokens: object) => void (kept.tokens = tokens),
    discoveryState: () => kept.found as never,
    saveDiscoveryState: (found: object) => void (kept.found = found),
    redirectToAuthorization: (url: URL) => void kept.opened.push(url),
    saveCodeVerifier: (verifier: string) => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier,
  }
}

export type Provider = ReturnType<typeof providerOf>

/** As a browser of the person's. Answers where it is sent to then: to where the program waits. */
export async function agreeAt(service: Service, asked: URL, cookie: string): Promise<URL> {
  const browser = signedInBrowser(service, cookie)
  const form = formOf(await (await browser.get(await openConsent(browser, asked.href))).text())
  form.set('decision', 'connect')
  return new URL(nextOf(await (await browser.post('/oauth/consent', form)).text()))
}
