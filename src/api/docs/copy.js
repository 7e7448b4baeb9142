// Puts a button on every block of code, which copies it. A block works without it.

for (const block of document.querySelectorAll('.code')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    const text = block.querySelector('code')?.textContent ?? ''
    try {
      await navigator.clipboard.writeText(text.replace(/\n+$/, '\n'))
      button.textContent = 'Copied'
    } catch {
      // Browsers copy over HTTPS and on this machine alone: then it is marked, for the keyboard.
      getSelection()?.selectAllChildren(block.querySelector('code') ?? block)
      button.textContent = 'Marked'
    }
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 2000)
  })
  block.append(button)
}
