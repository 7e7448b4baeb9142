// The settings of services that Berth uses: certificate authority, payments, sign-in. They come from config.ts, and say what is
// missing in an error that names the variable.

import { resolve } from 'node:path'
import { urlOf, type Env } from './setting-values.ts'

/** A certificate authority that issues automatically (RFC 8555). */
export type AcmeSettings = {
  directory: string
  email: string | null
  /** The root certificate to trust instead of Node's, in PEM. */
  caFile: string | null
  /** A program that sets DNS records: with it there is one certificate for all names below the domain. */
  dnsHook: string | null
}

/** The Stripe account that receives payments. */
export type StripeSettings = {
  secretKey: string
  /** The key that signs its webhooks. */
  webhookSecret: string
  url: string
}

/** This service's registration with a sign-in provider. */
export type ProviderClient = {
  clientId: string
  clientSecret: string
  /** The URL of the provider; GitHub's API has another one. */
  url: string
  apiUrl: string
}

export type SignInClients = { github: ProviderClient | null; google: ProviderClient | null }

export type TlsFiles = { cert: string; key: string }

export function signInClients(env: Env): SignInClients {
  const githubUrl = urlOf(env, 'BERTH_GITHUB_URL', ['https:', 'http:']) ?? 'https://github.com'
  const githubApi = urlOf(env, 'BERTH_GITHUB_API_URL', ['https:', 'http:']) ?? 'https://api.github.com'
  const googleUrl = urlOf(env, 'BERTH_GOOGLE_URL', ['https:', 'http:']) ?? 'https://accounts.google.com'
  return {
    github: providerClient(env, ['BERTH_GITHUB_CLIENT_ID', 'BERTH_GITHUB_CLIENT_SECRET'], {
      url: githubUrl,
      apiUrl: githubApi,
    }),
    google: providerClient(env, ['BERTH_GOOGLE_CLIENT_ID', 'BERTH_GOOGLE_CLIENT_SECRET'], {
      url: googleUrl,
      apiUrl: googleUrl,
    }),
  }
}

function providerClient(
  env: Env,
  [idName, secretName]: readonly [string, string],
  urls: { url: string; apiUrl: string },
): ProviderClient | null {
  const [clientId, clientSecret] = [env[idName], env[secretName]]
  if (!clientId && !clientSecret) return null
  if (clientId && clientSecret) return { clientId, clientSecret, ...urls }
  throw new Error(`${idName} and ${secretName} must be set together`)
}

export function stripe(env: Env): StripeSettings | null {
  const url = urlOf(env, 'BERTH_STRIPE_URL', ['https:', 'http:']) ?? 'https://api.stripe.com'
  const secretKey = prefixed(env, 'BERTH_STRIPE_SECRET_KEY', ['sk_', 'rk_'])
  const webhookSecret = prefixed(env, 'BERTH_STRIPE_WEBHOOK_SECRET', ['whsec_'])
  if (secretKey === null && webhookSecret === null) return null
  if (secretKey !== null && webhookSecret !== null) return { secretKey, webhookSecret, url }
  throw new Error('BERTH_STRIPE_SECRET_KEY and BERTH_STRIPE_WEBHOOK_SECRET must be set together')
}

/** The value is a secret, so the error does not repeat it. */
function prefixed(env: Env, name: string, prefixes: readonly string[]): string | null {
  const text = env[name]
  if (text === undefined) return null
  if (/^\w+$/.test(text) && prefixes.some((prefix) => text.startsWith(prefix))) return text
  throw new Error(`${name} must begin with ${prefixes.join(' or ')}`)
}

export function tlsFiles(env: Env): TlsFiles | null {
  const [cert, key] = [env['BERTH_TLS_CERT'], env['BERTH_TLS_KEY']]
  if (cert === undefined && key === undefined) return null
  if (cert !== undefined && key !== undefined) return { cert: resolve(cert), key: resolve(key) }
  throw new Error('BERTH_TLS_CERT and BERTH_TLS_KEY must be set together')
}

export function acme(env: Env): AcmeSettings | null {
  const path = (name: string) => (env[name] === undefined ? null : resolve(env[name]))
  const [directory, email] = [env['BERTH_ACME_DIRECTORY'], env['BERTH_ACME_EMAIL'] ?? null]
  const more = ['BERTH_ACME_EMAIL', 'BERTH_ACME_CA_FILE', 'BERTH_ACME_DNS_HOOK'].filter((name) => env[name])
  if (directory === undefined) {
    if (more.length > 0) throw new Error(`${more[0]} means nothing without BERTH_ACME_DIRECTORY`)
    return null
  }
  if (tlsFiles(env) !== null) {
    throw new Error('BERTH_ACME_DIRECTORY and BERTH_TLS_CERT exclude each other: unset one of them')
  }
  if (!URL.canParse(directory) || new URL(directory).protocol !== 'https:') {
    throw new Error(`BERTH_ACME_DIRECTORY must be an https URL, not "${directory}"`)
  }
  if (email !== null && !/^[^\s@,?]+@[^\s@,?]+$/.test(email)) {
    throw new Error(`BERTH_ACME_EMAIL must be an address, not "${email}"`)
  }
  return { directory, email, caFile: path('BERTH_ACME_CA_FILE'), dnsHook: path('BERTH_ACME_DNS_HOOK') }
}
