import { describe, expect, it } from 'vitest'
import { withHostName } from './criu-memory.ts'

/** As CRIU 4.2.1 wrote it: two magic numbers, the length, then the name and the domain. */
const saved = Buffer.from('19435654033247540e0000000a04756e69741206286e6f6e6529', 'hex')

describe('withHostName', () => {
  it('replaces a host name of any length in a CRIU image and changes no other byte', () => {
    for (const name of ['unit', 'x', 'a-much-longer-name', 'n'.repeat(64)]) {
      const renamed = withHostName(saved, name)
      expect(withHostName(renamed, 'unit').toString('hex')).toBe(saved.toString('hex'))
      expect(renamed.readUInt32LE(8)).toBe(renamed.length - 12)
      expect(renamed.subarray(0, 8)).toEqual(saved.subarray(0, 8))
      expect(renamed.toString('latin1')).toContain(`\n${String.fromCharCode(name.length)}${name}\u0012`)
    }
  })

  it('throws when the host name is not at its expected offset', () => {
    const other = Buffer.from(saved)
    other[12] = 0x12
    for (const image of [other, saved.subarray(0, 15), Buffer.concat([saved, saved])]) {
      expect(() => withHostName(image, 'x')).toThrow('is not where it is expected')
    }
  })
})
