// Collects what a program prints up to a bounded length, as text. A character that arrives in two pieces is whole.

import { StringDecoder } from 'node:string_decoder'

export type BoundedText = { add(piece: Buffer): void; text(): string }

/** Bytes that are not UTF-8 become U+FFFD. What is beyond the length is dropped. */
export function boundedText(maxCharacters: number): BoundedText {
  const decoder = new StringDecoder('utf8')
  let text = ''
  return {
    add: (piece) => {
      if (text.length < maxCharacters) text = (text + decoder.write(piece)).slice(0, maxCharacters)
    },
    text: () => text,
  }
}
