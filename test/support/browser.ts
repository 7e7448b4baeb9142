// A browser as far as signing in goes: it keeps cookies by host, names its origin, and stops at each redirect, so that a
// test can look at it, change it or hand it to another browser.

import type { Service } from './service.ts'

export type Browser = {
  get(url: string): Promise<Response>
  /** From a form on a page of the service. */
  post(path: string, fields?: Record<string, string> | URLSearchParams): Promise<Response>
  cookie(name: string): string | undefined
  setCookie(name: string, value: string): void
  /** The value of the Cookie header the service is sent. */
  cookies(): string
}

/** `person`: who sits before it, as the test's providers ask. */
export function openBrowser(service: Service, person = ''): Browser {
  const jars = new Map<string, Map<string, string>>()
  const own = new URL(service.app.config.publicUrl)
  const jarOf = (host: string) => {
    const jar = jars.get(host) ?? new Map<string, string>()
    jars.set(host, jar)
    return jar
  }
  const headerOf = (jar: Map<string, string>) =>
    [...jar].map(([name, value]) => `${name}=${value}`).join('; ')

  async function send(
    url: URL,
    init: Pick<RequestInit, 'method' | 'body'> & { headers?: Record<string, string> },
  ): Promise<Response> {
    const jar = jarOf(url.host)
    const target = url.host === own.host ? service.baseUrl + url.pathname + url.search : url
    const headers = { accept: 'text/html', cookie: headerOf(jar), 'x-person': person, ...init.headers }
    const response = await fetch(target, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
    return response
  }

  return {
    get: (url) => send(new URL(url, own), {}),
    post: (path, fields = {}) =>
      send(new URL(path, own), {
        method: 'POST',
        body: new URLSearchParams(fields),
        headers: { origin: own.origin },
      }),
    cookie: (name) => jarOf(own.host).get(name),
    setCookie: (name, value) => void jarOf(own.host).set(name, value),
    cookies: () => headerOf(jarOf(own.host)),
  }
}

/** Presses the button of a provider, and answers the address the provider sends the browser back to. */
export async function goToProvider(browser: Browser, provider: string): Promise<string> {
  const page = await browser.post(`/sign-in/${provider}`)
  const next = /url=([^"]+)"/.exec(await page.text())?.[1]
  if (page.status !== 200 || next === undefined)
    throw new Error(`${provider} cannot be reached: ${page.status}`)
  let url = new URL(next.replaceAll('&#38;', '&'))
  for (let hops = 0; hops < 10; hops++) {
    const answer = await browser.get(url.href)
    const location = answer.headers.get('location')
    if (location === null) throw new Error(`${provider} answered ${answer.status}: ${await answer.text()}`)
    const after = new URL(location, url)
    if (after.pathname === `/sign-in/${provider}`) return after.href
    url = after
  }
  throw new Error(`${provider} sends the browser around in a circle`)
}
