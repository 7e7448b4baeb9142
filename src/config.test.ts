import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { loadConfig } from './config.ts'

describe('settings', () => {
  it('are all described in docs/settings.md, which describes no others', async () => {
    const sources = ['config.ts', 'lib/fleet-settings.ts', 'lib/service-settings.ts'].map(
      (file) => new URL(file, import.meta.url),
    )
    const source = (await Promise.all(sources.map(async (file) => await readFile(file, 'utf8')))).join('')
    const page = await readFile(new URL('../docs/settings.md', import.meta.url), 'utf8')
    const read = new Set([...source.matchAll(/'((?:BERTH|DATABASE)_[A-Z_]+)'/g)].map(([, name]) => name))
    const described = new Set([...page.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name]) => name))
    expect(described).toEqual(read)
  })

  it('have the defaults that docs/settings.md states', async () => {
    const page = await readFile(new URL('../docs/settings.md', import.meta.url), 'utf8')
    const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| `([^`<]+)` \|/gm)]
    expect(rows.length).toBeGreaterThan(10)
    const said = Object.fromEntries(rows.map(([, name, value]) => [name, value]))
    // A setting with its documented default is the same as one that is left out.
    expect(loadConfig(said)).toEqual(loadConfig({}))
  })

  it.each([
    ['BERTH_API_ADDRESS', '7070'],
    ['BERTH_API_ADDRESS', 'localhost:99999'],
    ['BERTH_GATEWAY_HTTP', 'localhost'],
    ['BERTH_ISOLATION', 'docker'],
    ['BERTH_DOMAIN', 'berth.localhost:80'],
    ['BERTH_DOMAIN', '.berth'],
    ['BERTH_GATEWAY_PUBLIC_URL', 'berth.localhost'],
    ['BERTH_GATEWAY_PUBLIC_URL', 'https://apps.example.com'],
    ['BERTH_GATEWAY_PUBLIC_URL', 'https://berth.localhost/units'],
    ['BERTH_PUBLIC_URL', 'berth.example.com'],
    ['BERTH_PUBLIC_URL', 'ftp://berth.example.com'],
    ['BERTH_PUBLIC_URL', 'https://example.com/berth'],
    ['BERTH_PUBLIC_URL', 'https://user@example.com'],
    ['BERTH_CLIENT_HOSTS', 'https://claude.ai'],
    ['BERTH_GATEWAY_PUBLIC_TLS', '0'],
    ['BERTH_GATEWAY_PUBLIC_MYSQL', 'mysql'],
    ['BERTH_GATEWAY_WORKERS', '0'],
    ['BERTH_GATEWAY_WORKERS', '17'],
    ['BERTH_GATEWAY_WORKERS', 'all'],
    ['BERTH_GATEWAY_PORTS', '17000'],
    ['BERTH_GATEWAY_PORTS', '443-17000'],
    ['BERTH_GATEWAY_PORTS', '17999-17000'],
    ['BERTH_GATEWAY_PORTS', '60000-70000'],
    ['BERTH_GATEWAY_PORTS', '7000-7100'],
    ['BERTH_ACME_DIRECTORY', 'http://acme.example.com/directory'],
    ['BERTH_ACME_DIRECTORY', 'letsencrypt'],
    ['BERTH_ACME_EMAIL', 'ops@example.com'],
    ['BERTH_ACME_DNS_HOOK', '/usr/local/bin/hook'],
    ['BERTH_TLS_CERT', '/etc/tls.crt'],
    ['BERTH_SLEEP_DEFAULT', '30'],
    ['BERTH_SLEEP_MAX', '0m'],
    ['BERTH_LOG_LEVEL', 'loud'],
    ['BERTH_POOL_GB', '1.5'],
    ['BERTH_RESERVE_GB', '-1'],
    ['BERTH_REGISTRY_MIRRORS', 'docker.io'],
    ['BERTH_REGISTRY_PROXY', 'proxy'],
    ['BERTH_TRUSTED_PROXIES', 'proxy.example.com'],
    ['BERTH_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['BERTH_TRUSTED_PROXIES', '10.0.0.1/'],
    ['BERTH_RATE_EXECS', 'many'],
    ['BERTH_API_HOSTS', 'api.example.com:443'],
    ['BERTH_API_HOSTS', 'https://api.example.com'],
    ['BERTH_STRIPE_URL', 'stripe'],
    ['BERTH_STRIPE_SECRET_KEY', 'pk_live_1'],
    ['BERTH_STRIPE_SECRET_KEY', 'sk_test_1'],
    ['BERTH_STRIPE_WEBHOOK_SECRET', 'secret'],
    ['BERTH_STRIPE_WEBHOOK_SECRET', 'whsec_1'],
  ])('%s cannot be "%s", and the error names the setting', (name, value) => {
    expect(() => loadConfig({ [name]: value })).toThrow(name)
  })

  it.each([
    [{ BERTH_JOIN: 'token' }, 'BERTH_JOIN is for a machine with BERTH_ROLE=host'],
    [{ BERTH_ENGINE_ADDRESS: '10.0.0.2:7075' }, 'BERTH_ENGINE_ADDRESS is for a machine with BERTH_ROLE=host'],
    [{ BERTH_ROLE: 'host', DATABASE_URL: 'postgresql://b/b' }, 'unset DATABASE_URL'],
    [{ BERTH_ROLE: 'host', BERTH_ENGINE_CERTIFICATE: '/a.pem' }, 'unset BERTH_ENGINE_CERTIFICATE'],
    [{ BERTH_ROLE: 'host', BERTH_ENGINE_TLS: '10.0.0.2:0' }, 'needs a port that stays'],
    [{ BERTH_GATEWAY_HANDOVER: '10.0.0.1:7077' }, 'means nothing without other hosts'],
    [{ BERTH_ROLE: 'server' }, 'needs BERTH_HOSTS_ADDRESS'],
    [{ BERTH_ROLE: 'server', BERTH_GATEWAY_HANDOVER: '10.0.0.1:7077' }, 'unset BERTH_GATEWAY_HANDOVER'],
    [{ BERTH_ROLE: 'server', BERTH_JOIN: 'token' }, 'BERTH_JOIN is for a machine with BERTH_ROLE=host'],
    [{ BERTH_SERVER_ADDRESS: '10.0.0.1:7077' }, 'needs BERTH_ROLE=server and DATABASE_URL'],
    [{ BERTH_ROLE: 'engine' }, 'BERTH_ROLE'],
  ])('of a host and of a server do not mix: %j is refused with what to set', (env, words) => {
    expect(() => loadConfig(env)).toThrow(words)
  })

  it('of a host let its engine answer the server, with the certificate that comes with its joining', () => {
    const config = loadConfig({ BERTH_ROLE: 'host', BERTH_DATA_DIR: '/data' })
    expect(config.engineTls).toEqual({
      host: '0.0.0.0',
      port: 7075,
      certificateFile: '/data/fleet/engine.pem',
    })
  })

  it('survive being passed to a process as JSON', () => {
    const config = loadConfig({
      BERTH_FROZEN_FOR: 'never',
      BERTH_IMAGE_KEEP: 'never',
      BERTH_IMAGE_UPDATES: 'never',
    })
    expect(JSON.parse(JSON.stringify(config))).toEqual(config)
  })

  it('take certificates from one source only', () => {
    const acme = { BERTH_ACME_DIRECTORY: 'https://acme.example.com/directory' }
    expect(loadConfig(acme).acme).toEqual({
      directory: acme.BERTH_ACME_DIRECTORY,
      email: null,
      caFile: null,
      dnsHook: null,
    })
    const own = { BERTH_TLS_CERT: '/etc/tls.crt', BERTH_TLS_KEY: '/etc/tls.key' }
    expect(() => loadConfig({ ...acme, ...own })).toThrow('exclude each other')
    expect(() => loadConfig({ ...acme, BERTH_ACME_EMAIL: 'ops' })).toThrow('BERTH_ACME_EMAIL')
  })

  it('default the public URL to the address of the API', () => {
    expect(loadConfig({ BERTH_API_ADDRESS: '127.0.0.1:8080' }).publicUrl).toBe('http://127.0.0.1:8080')
  })

  it('accept an IPv6 address in brackets', () => {
    const config = loadConfig({ BERTH_API_ADDRESS: '[::1]:7070' })
    expect(config.apiAddress).toEqual({ host: '::1', port: 7070 })
    expect(config.publicUrl).toBe('http://[::1]:7070')
  })
})
