// Makes a tar archive of one file, for files that are too large for the call that writes one. Every program reads the
// format, USTAR.

const BLOCK = 512
const NAME_BYTES = 100

/** Null where the name does not fit; the caller then says so. */
export function tarOf(file: File): Blob | null {
  const name = new TextEncoder().encode(file.name)
  if (name.length > NAME_BYTES) return null
  const head = new Uint8Array(BLOCK)
  const put = (at: number, text: string) => head.set(new TextEncoder().encode(text), at)
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`
  head.set(name, 0)
  put(100, octal(0o644, 7))
  put(108, octal(0, 7))
  put(116, octal(0, 7))
  put(124, octal(file.size, 11))
  put(136, octal(Math.floor(file.lastModified / 1000), 11))
  put(148, ' '.repeat(8))
  put(156, '0')
  put(257, 'ustar\u000000')
  const sum = head.reduce((total, byte) => total + byte, 0)
  put(148, `${octal(sum, 6)} `)
  const padding = new Uint8Array((BLOCK - (file.size % BLOCK)) % BLOCK)
  return new Blob([head, file, padding, new Uint8Array(2 * BLOCK)], { type: 'application/x-tar' })
}
