// Frames of a streamed answer or request: one byte of type, four of length (big endian), then the payload. Output of
// commands is sent as raw bytes, without base64 or copying.

export const frameTypes = { message: 0, stdout: 1, stderr: 2, error: 3, keepAlive: 4, input: 5 } as const
export type FrameType = keyof typeof frameTypes
export type Frame = { type: FrameType; data: Buffer }

const HEADER_BYTES = 5
/** The limit of a frame that must be complete to be parsed: a log line, an exit, an error. */
const MESSAGE_BYTES = 4 * 1024 * 1024

const typesByCode = new Map(
  (Object.keys(frameTypes) as FrameType[]).map((type) => [frameTypes[type] as number, type]),
)

export function encodeFrame(type: FrameType, data: Buffer | string): Buffer {
  const payload = typeof data === 'string' ? Buffer.from(data) : data
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length)
  frame.writeUInt8(frameTypes[type], 0)
  frame.writeUInt32BE(payload.length, 1)
  payload.copy(frame, HEADER_BYTES)
  return frame
}

/**
 * Reads frames from chunks. Messages and errors are yielded complete; stdout and stderr in the pieces in which they
 * arrive. Throws if the bytes are not frames, or end within one.
 */
export async function* decodeFrames(chunks: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let rest: Buffer = Buffer.alloc(0)
  let body: { type: FrameType; left: number } | null = null
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    while (body !== null || rest.length >= HEADER_BYTES) {
      if (body === null) {
        body = readHeader(rest)
        rest = rest.subarray(HEADER_BYTES)
      }
      const whole: boolean = rest.length >= body.left
      if (!whole && (rest.length === 0 || !comesInPieces(body.type))) break
      const data = rest.subarray(0, body.left)
      rest = rest.subarray(data.length)
      yield { type: body.type, data }
      body = whole ? null : { type: body.type, left: body.left - data.length }
    }
  }
  if (body !== null || rest.length > 0) throw new Error('the stream ends within a frame')
}

function readHeader(bytes: Buffer): { type: FrameType; left: number } {
  const type = typesByCode.get(bytes.readUInt8(0))
  const left = bytes.readUInt32BE(1)
  if (type === undefined) throw new Error('the stream holds no frames')
  if (!comesInPieces(type) && left > MESSAGE_BYTES) throw new Error('a message of the stream is too long')
  return { type, left }
}

function comesInPieces(type: FrameType): boolean {
  return type === 'stdout' || type === 'stderr' || type === 'input'
}
