// Requests and answers as recorded byte for byte from kernel 6.18. The table is `t`, its set `sent`.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { askForElements, askForGeneration, readElements, readGeneration, readVerdict } from './netlink.ts'

const bytes = (...hex: string[]) => Buffer.from(hex.join(''), 'hex')
const header = '0c7f0000'
const named = '06000100740000000900020073656e7400000000'
const counter = '2c0007000c000100636f756e746572001c000200'
const expires = '0c000500000000000000ea24'

const elements = bytes(
  `c40000000c0a020000000000${header}02000011${named}9c000300`,
  `4c000100100001000c0001000a0900030a090002${counter}`,
  `0c00010000000000000000010c0002000000000100000007${expires}`,
  `4c000100100001000c0001000a0900020a090003${counter}`,
  `0c00010000000000000001a40c0002000000000000000007${expires}`,
)
const end = bytes(
  `2c0000000c0a020000000000${header}02000011${named}04000300`,
  `140000000300020000000000${header}00000000`,
)
const refused = bytes(
  `3c0000000200000000000000${header}feffffff`,
  `280000000d0a0103000000000000000002000000${named}`,
)
const uncounted = bytes(
  `400000000c0a020000000000${header}02000011${named}`,
  '1800030014000100100001000c0001000a0900020a090003',
)
const generation = bytes(
  `340000000f0a000000000000${header}000000110800010000000011`,
  '0800020000007f0c0f0003004d61696e5468726561640000',
)

/** Sets the flag by which the kernel marks a dump that a rule change interrupted. */
function disturbed(answer: Buffer): Buffer {
  const marked = Buffer.from(answer)
  marked.writeUInt16LE(marked.readUInt16LE(6) | 0x10, 6)
  return marked
}

test('requests are encoded as the kernel expects them', () => {
  expect(askForElements({ table: 't', set: 'sent' }).toString('hex')).toBe(
    `280000000d0a0103000000000000000002000000${named}`,
  )
  expect(askForGeneration().toString('hex')).toBe('14000000100a0100000000000000000000000000')
})

test('readElements returns packet counters beyond 32 bits', () => {
  const [first, second] = [
    { source: 0x0a_09_00_03, target: 0x0a_09_00_02, packets: 2 ** 32 + 7 },
    { source: 0x0a_09_00_02, target: 0x0a_09_00_03, packets: 7 },
  ]
  expect(readElements(elements)).toEqual({ counted: [first, second], isLast: false, isDisturbed: false })
})

test('readElements recognizes the last part and a part interrupted by a rule change', () => {
  expect(readElements(end)).toEqual({ counted: [], isLast: true, isDisturbed: false })
  expect(readElements(disturbed(end))).toMatchObject({ isLast: true, isDisturbed: true })
  expect(readElements(disturbed(elements))).toMatchObject({ isLast: false, isDisturbed: true })
})

test('readElements omits elements without a counter', () => {
  expect(readElements(uncounted).counted).toEqual([])
})

test('readElements throws the kernel’s error name, also for an error in the last part', () => {
  expect(() => readElements(refused)).toThrow('ENOENT')
  const late = Buffer.from(end)
  late.writeInt32LE(-105, end.length - 4)
  expect(() => readElements(late)).toThrow('ENOBUFS')
})

test('readGeneration returns the generation of the rule set', () => {
  expect(readGeneration(generation)).toBe(17)
  expect(() => readGeneration(end)).toThrow('did not say')
})

test('truncated or corrupted bytes yield a result or an error and never hang', () => {
  const answers = [elements, end, refused, uncounted, generation]
  let read = 0
  fc.assert(
    fc.property(
      fc.constantFrom(...answers),
      fc.nat(300),
      fc.array(fc.tuple(fc.nat(300), fc.nat(255)), { maxLength: 10 }),
      (answer, length, changes) => {
        const spoilt = Buffer.from(answer.subarray(0, length))
        for (const [at, byte] of changes) if (at < spoilt.length) spoilt[at] = byte
        for (const understand of [readElements, readGeneration]) {
          try {
            understand(spoilt)
            read += 1
          } catch (error) {
            expect(error).toBeInstanceOf(Error)
          }
        }
      },
    ),
  )
  expect(read).toBeGreaterThan(0)
})

test('readVerdict accepts the answer to changes that were made, and throws for refused ones and for other messages', () => {
  const made = bytes(`240000000200000100000000${header}00000000`, '300000000c0a050500000000', '00000000')
  expect(() => readVerdict(made)).not.toThrow()
  expect(() => readVerdict(refused)).toThrow('ENOENT')
  expect(() => readVerdict(generation)).toThrow('did not say')
  expect(() => readVerdict(bytes(''))).toThrow('did not say')
})
