// Saves data as a file of the person's computer.

export function download(name: string, type: string, text: string): void {
  save(name, new Blob([text], { type }))
}

export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
