/** The URL that uses up the one-time token of a sign-in link. */
export function signInUrl(publicUrl: string, token: string): string {
  return `${publicUrl}/sign-in?token=${token}`
}
