// A valid email address is a single plain ASCII address: no display name, quotes or comments, nothing that could end
// a header or begin another address, and no look-alike letters (reliability S18, S26).

export const emailPattern =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*$/

/** Compares without case. An address with another plus tag is another address. */
export function isSameEmail(one: string, other: string): boolean {
  return foldCase(one) === foldCase(other)
}

/** Not `toLowerCase()`, which turns the Kelvin sign into a k. */
function foldCase(email: string): string {
  return email.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
