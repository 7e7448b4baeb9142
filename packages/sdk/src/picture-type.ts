// Which picture a file is, by its first bytes: what its name says may be wrong.

/** No SVG: it is a document. */
const beginnings: [type: string, bytes: RegExp][] = [
  ['image/png', /^\u0089PNG\r\n/],
  ['image/jpeg', /^\u00ff\u00d8\u00ff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
]

/** The media type of a PNG, JPEG, GIF or WebP; null for anything else. */
export function pictureTypeOf(bytes: Uint8Array): string | null {
  const head = String.fromCharCode(...bytes.subarray(0, 16))
  return beginnings.find(([, beginning]) => beginning.test(head))?.[0] ?? null
}
