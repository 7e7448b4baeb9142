// The input of a helper that comes from elsewhere, piece by piece.

/** If the source fails, the helper's input stays open until the helper is killed: it never takes a part for the whole. */
export async function* watched(
  pieces: AsyncIterable<Buffer>,
  failed: AbortController,
  onPiece: (piece: Buffer) => void,
): AsyncGenerator<Buffer> {
  try {
    for await (const piece of pieces) {
      onPiece(piece)
      yield piece
    }
  } catch (error) {
    failed.abort(error)
    await new Promise<never>(() => {})
  }
}
