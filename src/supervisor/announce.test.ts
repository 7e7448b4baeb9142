// What the start says about the URLs of units, before a browser warns of one.

import { expect, it } from 'vitest'
import { loadConfig } from '../config.ts'
import { unitUrls } from './announce.ts'

const told = (env: Record<string, string>) => unitUrls(loadConfig({ BERTH_DATA_DIR: '/data', ...env }))

it('the start names the authority to trust, and the address on this machine that needs no trust', () => {
  expect(told({})).toEqual([
    'below https://berth.localhost:7443; visitors must trust /data/ca/ca.crt (docs/endpoints.md)',
    '(on this machine http://NAME.berth.localhost:7080 works without it)',
  ])
})

it('the start names no plain address that this machine may not reach or that a proxy is in front of', () => {
  expect(told({ BERTH_GATEWAY_HTTP: '192.0.2.1:7080' })).toHaveLength(1)
  expect(told({ BERTH_DOMAIN: 'apps.example.com' })).toHaveLength(1)
  expect(told({ BERTH_GATEWAY_PUBLIC_URL: 'https://berth.localhost' })).toEqual([
    'below https://berth.localhost',
  ])
})
