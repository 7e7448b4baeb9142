// What tokens of this service are for: all of it, by its MCP endpoint and by the API (RFC 8707, spec 5.2).

/** The one an access token is for, as it is announced. */
export function resourceOf(publicUrl: string): string {
  return `${publicUrl}/mcp`
}

/** Whether a program that asks for a token for this resource means this service. Without one it can mean no other. */
export function isOurResource(resource: string | null, publicUrl: string): boolean {
  if (resource === null) return true
  if (!URL.canParse(resource)) return false
  const ours = [publicUrl, resourceOf(publicUrl)]
    .flatMap((url) => [url, `${url}/`])
    .map((url) => new URL(url).href)
  return ours.includes(new URL(resource).href)
}
