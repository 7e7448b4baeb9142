// Anchors of headings in the documentation.

/** The anchor of a heading, as GitHub makes it, so that links to headings work there too. */
export function slugOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
}
