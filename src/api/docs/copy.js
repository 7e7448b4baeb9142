// Puts a button on every block of code, which copies it. A block works without it.

for (const block of document.querySelectorAll('.code')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', () => void copy(block, button))
  block.append(button)
}

async function copy(block, button) {
  const code = block.querySelector('code') ?? block
  try {
    await navigator.clipboard.writeText((code.textContent ?? '').replace(/\n+$/, '\n'))
    button.textContent = 'Copied'
  } catch {
    // Browsers copy over HTTPS and on this machine alone: then it is marked, for the keyboard.
    getSelection()?.selectAllChildren(code)
    button.textContent = 'Marked'
  }
  setTimeout(() => {
    button.textContent = 'Copy'
  }, 2000)
}
