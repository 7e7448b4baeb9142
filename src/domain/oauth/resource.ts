// The resource of all tokens: this whole service, its MCP endpoint and its API (RFC 8707, spec 5.2).

/** The resource, as the metadata announces it. */
export function resourceOf(publicUrl: string): string {
  return `${publicUrl}/mcp`
}

/** Whether the resource of a token request is this service; a request without one means this service. */
export function isOurResource(resource: string | null, publicUrl: string): boolean {
  if (resource === null) return true
  if (!URL.canParse(resource)) return false
  const ours = [publicUrl, resourceOf(publicUrl)]
    .flatMap((url) => [url, `${url}/`])
    .map((url) => new URL(url).href)
  return ours.includes(new URL(resource).href)
}
