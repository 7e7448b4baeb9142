import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadSecretKey, SecretKey } from './crypto.ts'

const key = new SecretKey(Buffer.alloc(32, 1))
const context = ['team', 'unit', 'name']

describe('a sealed value', () => {
  it('opens with its key and context and does not reveal its content', () => {
    const sealed = key.seal(Buffer.from('hidden'), context)
    expect(sealed.includes('hidden')).toBe(false)
    expect(key.open(sealed, context).toString()).toBe('hidden')
    expect(key.seal(Buffer.from('hidden'), context)).not.toEqual(sealed)
  })

  it.each([
    ['another key', new SecretKey(Buffer.alloc(32, 2)), context],
    ['another team', key, ['other', 'unit', 'name']],
    ['parts cut elsewhere', key, ['teamunit', 'name']],
    ['parts joined', key, ['team', 'unit:name']],
  ])('does not open with %s', (_what, otherKey, otherContext) => {
    const sealed = key.seal(Buffer.from('hidden'), context)
    expect(() => otherKey.open(sealed, otherContext)).toThrow()
  })

  it('has a unique nonce among a hundred thousand (reliability S28)', () => {
    // Eight of its bytes are enough: the probability of a collision is one in 10^9.
    const nonces = new BigUint64Array(100_000)
    for (const index of nonces.keys()) nonces[index] = key.seal(Buffer.alloc(0), ['x']).readBigUInt64BE(1)
    nonces.sort()
    expect(nonces.some((nonce, index) => index > 0 && nonce === nonces[index - 1])).toBe(false)
  }, 60_000)

  it('does not open if any byte was changed or it was truncated', () => {
    const sealed = key.seal(Buffer.from('hidden'), context)
    for (let index = 0; index < sealed.length; index++) {
      const changed = Buffer.from(sealed)
      changed[index] = (changed[index] ?? 0) ^ 1
      expect(() => key.open(changed, context)).toThrow()
      expect(() => key.open(sealed.subarray(0, index), context)).toThrow()
    }
  })
})

describe('the key file', () => {
  it('is created once by concurrent processes, and only its owner can read it', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'berth-key-'))
    const path = join(dir, 'deep', 'secret.key')
    const keys = await Promise.all(Array.from({ length: 10 }, () => loadSecretKey(path)))
    const sealed = keys[0]?.seal(Buffer.from('x'), []) ?? Buffer.alloc(0)
    for (const each of [...keys, await loadSecretKey(path)])
      expect(each.open(sealed, []).toString()).toBe('x')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    await rm(dir, { recursive: true })
  })

  it('is redacted in JSON', () => {
    expect(JSON.stringify({ key })).toBe('{"key":"[redacted]"}')
  })
})
