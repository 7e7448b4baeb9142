/** Where the one-time token of a sign-in link is used up. */
export function signInUrl(publicUrl: string, token: string): string {
  return `${publicUrl}/sign-in?token=${token}`
}
