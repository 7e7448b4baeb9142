import { describe, expect, test } from 'vitest'
import { findEndpoint, pickCredentials, registriesConf } from './registry-settings.ts'

const mirrors = {
  'docker.io': '127.0.0.1:5000',
  'ghcr.io': 'http://[::1]:5001',
  'quay.io': 'https://mirror.example.com',
}

describe('where a registry is fetched', () => {
  test('at its own address unless the operator names a mirror', () => {
    expect(findEndpoint('gcr.io', mirrors)).toEqual({ location: 'gcr.io', mirror: null, insecure: false })
    // A registry's name is a caller's word: it must not find what every object has.
    expect(findEndpoint('constructor', mirrors).mirror).toBeNull()
  })

  test('at a mirror, under an alias, since clients keep loopback addresses away from proxies', () => {
    const { location, mirror, insecure } = findEndpoint('docker.io', mirrors)
    expect(location).not.toContain('127.0.0.1')
    expect(mirror?.address).toEqual({ host: '127.0.0.1', port: 5000 })
    expect(insecure).toBe(true)
    expect(findEndpoint('ghcr.io', mirrors).mirror?.address).toEqual({ host: '::1', port: 5001 })
  })

  test('at an https:// mirror only with its certificate', () => {
    expect(findEndpoint('quay.io', mirrors)).toEqual({
      location: 'mirror.example.com',
      mirror: {
        name: 'mirror.example.com',
        port: 443,
        address: { host: 'mirror.example.com', port: 443 },
      },
      insecure: false,
    })
  })

  test('and registries.conf says so for that registry alone', () => {
    expect(registriesConf('docker.io', findEndpoint('docker.io', mirrors))).toContain('insecure = true')
    expect(registriesConf('gcr.io', findEndpoint('gcr.io', mirrors))).toContain('insecure = false')
  })
})

describe('credentials go to the registry they are for', () => {
  const auths = {
    'https://index.docker.io/v1/': { auth: 'hub' },
    'ghcr.io': { auth: 'ghcr' },
    'ghcr.io/owner': { auth: 'owner' },
    'gcr.io': { auth: 'gcr' },
    'gcr.io.evil.com': { auth: 'evil' },
    '127.0.0.1:5000': { auth: 'mirror' },
  }
  const pick = (registry: string, used: Record<string, string> = {}) => {
    const endpoint = findEndpoint(registry, used)
    const text = pickCredentials(JSON.stringify({ auths }), registry, used[registry], endpoint)
    return JSON.parse(text) as unknown
  }

  test('by host, with paths below it', () => {
    expect(pick('ghcr.io')).toEqual({
      auths: { 'ghcr.io': { auth: 'ghcr' }, 'ghcr.io/owner': { auth: 'owner' } },
    })
    expect(pick('gcr.io')).toEqual({ auths: { 'gcr.io': { auth: 'gcr' } } })
    expect(pick('quay.io')).toEqual({ auths: {} })
  })

  test("also under Docker Hub's older name", () => {
    expect(pick('docker.io')).toEqual({ auths: { 'docker.io': { auth: 'hub' } } })
  })

  test('and a mirror gets its own, not those of what it mirrors', () => {
    expect(pick('docker.io', mirrors)).toEqual({ auths: { 'mirror.berth.local': { auth: 'mirror' } } })
    expect(pick('quay.io', mirrors)).toEqual({ auths: {} })
  })

  test.each(['{}', 'null', '[]', '{"auths":null}', '{"auths":"x"}'])(
    'of a file that says %s, none',
    (text) => {
      const endpoint = findEndpoint('ghcr.io', {})
      expect(JSON.parse(pickCredentials(text, 'ghcr.io', undefined, endpoint))).toEqual({ auths: {} })
    },
  )
})
