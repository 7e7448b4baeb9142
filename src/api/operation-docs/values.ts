// Values that several examples share.

import { openEgress } from '../../lib/egress/rules.ts'

const createdAt = '2026-05-04T09:00:00.000Z'
export const startedAt = '2026-05-04T09:00:02.100Z'

export const ids = {
  team: 'team_01jtcnw0fx7k2m3p4q5r6s7t8v',
  stack: 'stack_01jtcnw1a2b3c4d5e6f7g8h9jk',
  unit: 'unit_01jtcnw2m3n4p5q6r7s8t9v0wx',
  copy: 'unit_01jtcp05a6b7c8d9e0f1g2h3jk',
  user: 'user_01jtcnvzq1w2e3r4t5y6u7i8p9',
  key: 'key_01jtcnw3z8y7x6w5v4u3t2s1r0',
}

export const unit = {
  id: ids.unit,
  teamId: ids.team,
  stackId: ids.stack,
  name: 'web',
  image: 'docker.io/library/node:22',
  cmd: ['node', '/app/main.js'],
  entrypoint: null,
  size: 'small',
  state: 'running',
  internalHost: 'web.shop.internal',
  endpoints: [
    {
      id: 'endpoint_01jtcnw4k5j6h7g8f9d0s1a2q3',
      port: 3000,
      protocol: 'http',
      mode: 'public',
      url: 'https://web-k3v9q2.units.example.com/',
    },
  ],
  ports: [3000],
  databasePorts: [],
  expose: 3000,
  env: { NODE_ENV: 'production', API_KEY: { secret: 'API_KEY' } },
  volume: null,
  healthcheck: null,
  createdAt,
  startedAt,
  sleep: '30m',
  sleepsAt: '2026-05-04T09:30:02.100Z',
  lastUsedAt: '2026-05-04T09:00:02.100Z',
  costCentsSoFar: 0.0042,
  error: null,
  destroysAt: null,
  stoppedReason: null,
  lastExit: null,
  files: [{ path: '/app/main.js', bytes: 312 }],
  forkedFrom: null,
  copied: null,
  createdBy: { id: ids.key, kind: 'key', name: 'ci' },
  memory: { kept: null, longSleep: 'tried' },
  progress: null,
  host: { id: 'host_0192f0c0a1b27c3d8e4f5a6b7c8d9e0f', region: null },
  egress: { ...openEgress, version: 0 },
  nested: false,
  runtime: 'runsc 20260905.0',
  metadata: { app: 'shop' },
  timeToLive: null,
  atEnd: 'destroy',
  endsAt: null,
}

export const copyOfUnit = {
  ...unit,
  id: ids.copy,
  name: 'web-2',
  endpoints: [],
  forkedFrom: ids.unit,
  copied: 'memory',
}
export const stoppedUnit = { ...unit, state: 'stopped', sleepsAt: null, stoppedReason: 'user' }
export const sleepingUnit = {
  ...unit,
  state: 'sleeping',
  sleepsAt: null,
  stoppedReason: 'idle',
  memory: { kept: true, longSleep: 'tried' },
  progress: null,
}

export const stack = { id: ids.stack, name: 'shop', teamId: ids.team, createdAt, units: [unit] }

export const policy = {
  maxConcurrentUnits: 5,
  dailySpendCapCents: 1000,
  allowedSizes: ['nano', 'small', 'medium'],
  allowedRegistries: ['docker.io', 'ghcr.io', 'quay.io'],
  maxSleep: 'never',
  expiresAt: null,
  egress: openEgress,
  allowedSecrets: ['OPENAI_API_KEY'],
  allowNested: false,
  rates: {},
}

export const secret = {
  name: 'OPENAI_API_KEY',
  hosts: ['api.openai.com'],
  placeholder: 'berth_secret_5b1c0e7a94d2f38866ab01c4e9d7f25083ca6e1b',
  units: 2,
  createdAt,
  updatedAt: '2026-05-04T11:30:00.000Z',
}

export const agent = {
  id: ids.key,
  kind: 'key',
  name: 'ci',
  prefix: 'berth_live_3k9v2q8m1x0z',
  policy,
  client: null,
  agent: null,
  createdBy: { name: 'Ada', email: 'ada@example.com' },
  createdAt,
  connectedAt: null,
  lastUsedAt: '2026-05-04T09:00:00.000Z',
  spentTodayCents: 42.5,
  liveUnits: 2,
  revokedAt: null,
}

export const team = {
  id: ids.team,
  slug: 'shop',
  name: 'Shop',
  personal: false,
  plan: 'pro',
  region: 'paris',
  currency: 'eur',
  role: 'owner',
  creditBalanceCents: 2500,
  paysAsItGoes: false,
  egress: openEgress,
}

export const invite = {
  id: 'invite_01jtcnw5p6o7i8u9y0t1r2e3w4',
  email: 'grace@example.com',
  role: 'member',
  invitedBy: ids.user,
  expiresAt: '2026-05-11T09:00:00.000Z',
  createdAt,
}

export const payment = {
  id: 'payment_01jtcnw6l7k8j9h0g1f2d3s4a5',
  state: 'open',
  amountCents: 2000,
  checkoutUrl: 'https://checkout.stripe.com/c/pay/cs_live_a1b2c3',
  createdBy: ids.user,
  createdAt,
  closedAt: null,
}

export const costLine = '0.5 cents an hour while it runs. It sleeps after 30m without use.'
