// What an email address is to us: one address in plain ASCII. No display name, quotes or comments, nothing that
// could end a header or begin another address, and no letter that only looks like another (reliability S18, S26).

export const emailPattern =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*$/

/** In any case it is the same address; with another tag behind a plus it is another's. */
export function isSameEmail(one: string, other: string): boolean {
  return foldCase(one) === foldCase(other)
}

/** Not `toLowerCase()`, which makes a k of a Kelvin sign. */
function foldCase(email: string): string {
  return email.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
