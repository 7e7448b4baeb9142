// Opens a URL in the browser of the person at this terminal. The browser's program is started with the URL as one
// argument, without a shell.

import { spawn } from 'node:child_process'
import { note } from './output.ts'

/** Prints the URL if there is no browser. */
export async function openUrl(url: string): Promise<void> {
  const [program = '', ...before] =
    process.platform === 'darwin'
      ? ['open']
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler']
        : ['xdg-open']
  const isOpen = await new Promise<boolean>((resolve) => {
    const child = spawn(program, [...before, url], { stdio: 'ignore', detached: true })
    child.once('error', () => resolve(false)).once('spawn', () => resolve(true))
    child.unref()
  })
  if (!isOpen) note(`Open it yourself: ${url}`)
}
