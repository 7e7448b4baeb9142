// Standard input, read to its end. As bytes: a piece of it may end within a character.

/** Stops once it is longer than `most`. */
export async function readInput(most: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    pieces.push(piece)
    if ((bytes += piece.length) > most) break
  }
  return Buffer.concat(pieces)
}
