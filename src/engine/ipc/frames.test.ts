import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeFrames, encodeFrame, type Frame, type FrameType, frameTypes } from './frames.ts'

async function* inChunks(bytes: Buffer, cuts: number[]): AsyncGenerator<Buffer> {
  const ends = [...new Set(cuts.map((cut) => cut % (bytes.length + 1))), bytes.length].sort((a, b) => a - b)
  let start = 0
  for (const end of ends) {
    yield bytes.subarray(start, end)
    start = end
  }
}

async function decode(bytes: Buffer, cuts: number[] = []): Promise<Frame[]> {
  const frames: Frame[] = []
  for await (const frame of decodeFrames(inChunks(bytes, cuts))) frames.push(frame)
  return frames
}

/** Joins consecutive frames of one stream, because where a stream is split has no meaning. */
function joined(frames: Frame[]): { type: FrameType; data: string }[] {
  const result: { type: FrameType; data: string }[] = []
  for (const { type, data } of frames) {
    const last = result.at(-1)
    const inPieces = type === 'stdout' || type === 'stderr' || type === 'input'
    if (inPieces && last?.type === type) last.data += data.toString('hex')
    else if (!inPieces || data.length > 0) result.push({ type, data: data.toString('hex') })
  }
  return result
}

const anyFrame = fc.record({
  type: fc.constantFrom(...(Object.keys(frameTypes) as FrameType[])),
  data: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
})

describe('the frame codec', () => {
  test('decodes what was encoded, however the stream is split into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyFrame, { maxLength: 40 }),
        fc.array(fc.nat(), { maxLength: 60 }),
        async (frames, cuts) => {
          const bytes = Buffer.concat(frames.map(({ type, data }) => encodeFrame(type, data)))
          expect(joined(await decode(bytes, cuts))).toEqual(joined(frames))
        },
      ),
    )
  })

  test('throws when the stream ends in the middle of a frame', async () => {
    const bytes = encodeFrame('stdout', 'hello')
    for (const end of [1, 4, 5, 7])
      await expect(decode(bytes.subarray(0, end))).rejects.toThrow('ends within')
  })

  test('throws for bytes that are no frame and for a message with an excessive length', async () => {
    await expect(decode(Buffer.from('HTTP/1.1 200 OK'))).rejects.toThrow('no frames')
    const huge = Buffer.from([frameTypes.message, 0xff, 0xff, 0xff, 0xff])
    await expect(decode(huge)).rejects.toThrow('too long')
  })
})
