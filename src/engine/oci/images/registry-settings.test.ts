import { describe, expect, test } from 'vitest'
import { findEndpoint, pickCredentials, registriesConf } from './registry-settings.ts'

const mirrors = {
  'docker.io': '127.0.0.1:5000',
  'ghcr.io': 'http://[::1]:5001',
  'quay.io': 'https://mirror.example.com',
}

describe('findEndpoint', () => {
  test('returns the registry itself unless the operator has configured a mirror', () => {
    expect(findEndpoint('gcr.io', mirrors)).toEqual({ location: 'gcr.io', mirror: null, insecure: false })
    // A registry's name is a caller's word: it must not find what every object has.
    expect(findEndpoint('constructor', mirrors).mirror).toBeNull()
  })

  test('returns an alias for a loopback mirror, because clients bypass proxies for loopback addresses', () => {
    const { location, mirror, insecure } = findEndpoint('docker.io', mirrors)
    expect(location).not.toContain('127.0.0.1')
    expect(mirror?.address).toEqual({ host: '127.0.0.1', port: 5000 })
    expect(insecure).toBe(true)
    expect(findEndpoint('ghcr.io', mirrors).mirror?.address).toEqual({ host: '::1', port: 5001 })
  })

  test('requires TLS for an https:// mirror', () => {
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

  test('marks a registry as insecure in registries.conf only if its mirror is plain HTTP', () => {
    expect(registriesConf('docker.io', findEndpoint('docker.io', mirrors))).toContain('insecure = true')
    expect(registriesConf('gcr.io', findEndpoint('gcr.io', mirrors))).toContain('insecure = false')
  })
})

describe('pickCredentials', () => {
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

  test('selects entries of the exact registry host, with paths below it', () => {
    expect(pick('ghcr.io')).toEqual({
      auths: { 'ghcr.io': { auth: 'ghcr' }, 'ghcr.io/owner': { auth: 'owner' } },
    })
    expect(pick('gcr.io')).toEqual({ auths: { 'gcr.io': { auth: 'gcr' } } })
    expect(pick('quay.io')).toEqual({ auths: {} })
  })

  test('finds Docker Hub credentials under the older index.docker.io name', () => {
    expect(pick('docker.io')).toEqual({ auths: { 'docker.io': { auth: 'hub' } } })
  })

  test('gives a mirror its own credentials, never those of the mirrored registry', () => {
    expect(pick('docker.io', mirrors)).toEqual({ auths: { 'mirror.berth.local': { auth: 'mirror' } } })
    expect(pick('quay.io', mirrors)).toEqual({ auths: {} })
  })

  test.each(['{}', 'null', '[]', '{"auths":null}', '{"auths":"x"}'])(
    'returns no credentials for a file that contains %s',
    (text) => {
      const endpoint = findEndpoint('ghcr.io', {})
      expect(JSON.parse(pickCredentials(text, 'ghcr.io', undefined, endpoint))).toEqual({ auths: {} })
    },
  )
})
