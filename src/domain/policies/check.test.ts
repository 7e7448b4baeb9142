import { describe, expect, it } from 'vitest'
import { AppError } from '../../contract/errors.ts'
import { policySchema } from '../../contract/policy.ts'
import {
  type EffectivePolicy,
  checkConcurrency,
  checkRegistry,
  checkSize,
  checkSleep,
  checkUnit,
  defaultSleep,
} from './check.ts'

const bounds = (
  policy: Record<string, unknown> = {},
  rest: Partial<EffectivePolicy> = {},
): EffectivePolicy => ({
  policy: policySchema.parse(policy),
  plan: 'pro',
  sleepMax: 'never',
  teamEgress: null,
  ...rest,
})

function outcome(check: () => void): string {
  try {
    check()
    return 'allowed'
  } catch (error) {
    if (error instanceof AppError) return `${error.status} ${error.code}`
    throw error
  }
}

describe('checkSize', () => {
  it.each([
    ['nano', 'allowed'],
    ['medium', 'allowed'],
    ['large', '402 policy_violation'],
  ] as const)('%s under the default policy is %s', (size, expected) => {
    expect(outcome(() => checkSize(bounds(), size))).toBe(expected)
  })
})

describe('a unit in which containers may run', () => {
  const egress = { mode: 'open', allow: [], siblings: 'team' } as const
  const unit = { size: 'nano', registry: 'berth.local', sleep: '1h', teamSecrets: [], nested: true } as const
  it.each([
    [{}, '402 policy_violation'],
    [{ allowNested: false }, '402 policy_violation'],
    [{ allowNested: true }, 'allowed'],
  ])('under the policy %j is %s', (policy, expected) => {
    const asked = { ...unit, egress: { ...egress, allow: [] }, teamSecrets: [] }
    expect(outcome(() => checkUnit(bounds(policy), asked))).toBe(expected)
  })
})

describe('checkRegistry', () => {
  it.each([
    ['docker.io', ['docker.io'], 'allowed'],
    ['ghcr.io', ['docker.io'], '402 policy_violation'],
    ['evil.docker.io', ['docker.io'], '402 policy_violation'],
    ['docker.io.evil.com', ['docker.io'], '402 policy_violation'],
    ['berth.local', [], 'allowed'],
    ['docker.io', [], '402 policy_violation'],
  ])('%s under %j is %s', (registry, allowedRegistries, expected) => {
    expect(outcome(() => checkRegistry(bounds({ allowedRegistries }), registry))).toBe(expected)
  })
})

describe('the sleep window', () => {
  it.each([
    ['1h', '1h', 'never', 'pro', 'allowed'],
    ['60m', '1h', 'never', 'pro', 'allowed'],
    ['61m', '1h', 'never', 'pro', '402 policy_violation'],
    ['1d', 'never', '23h', 'pro', '402 policy_violation'],
    ['never', 'never', 'never', 'pro', 'allowed'],
    ['never', 'never', 'never', 'team', 'allowed'],
    ['never', 'never', 'never', 'hobby', '403 forbidden'],
    ['never', '99999d', 'never', 'pro', '402 policy_violation'],
    ['99999d', 'never', 'never', 'hobby', 'allowed'],
  ] as const)(
    '%s with key %s, environment %s, plan %s is %s',
    (sleep, maxSleep, sleepMax, plan, expected) => {
      expect(outcome(() => checkSleep(bounds({ maxSleep }, { sleepMax, plan }), sleep))).toBe(expected)
    },
  )

  it.each([
    ['30m', 'never', 'never', 'pro', '30m'],
    ['30m', '10m', 'never', 'pro', '10m'],
    ['30m', 'never', '5m', 'pro', '5m'],
    ['never', 'never', 'never', 'pro', 'never'],
    ['never', 'never', 'never', 'hobby', '30m'],
  ] as const)(
    'when left out with default %s, key %s, environment %s and plan %s is %s and allowed',
    (fallback, maxSleep, sleepMax, plan, expected) => {
      const all = bounds({ maxSleep }, { sleepMax, plan })
      expect(defaultSleep(all, fallback)).toBe(expected)
      expect(outcome(() => checkSleep(all, expected))).toBe('allowed')
    },
  )
})

describe('checkConcurrency', () => {
  it.each([
    [5, 4, 'allowed'],
    [5, 5, '402 quota_exceeded'],
    [5, 6, '402 quota_exceeded'],
    [0, 0, '402 quota_exceeded'],
  ])('for at most %d units with %d running is %s', (maxConcurrentUnits, live, expected) => {
    expect(outcome(() => checkConcurrency(policySchema.parse({ maxConcurrentUnits }), live))).toBe(expected)
  })
})
