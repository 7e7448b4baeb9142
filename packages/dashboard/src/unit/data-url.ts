// What a unit gave, as an address that a picture or a frame of this page may show.

export function dataUrl(type: string, bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return `data:${type};base64,${btoa(binary)}`
}
