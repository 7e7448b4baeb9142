// Whether the command palette is open, and the key that opens it.

import { useSyncExternalStore } from 'react'
import { isPopupOpen } from './keys.ts'

const isMac = navigator.userAgent.includes('Mac')
export const paletteKey = isMac ? '⌘K' : 'Ctrl K'

let isOpen = false
const watchers = new Set<() => void>()

function set(next: boolean): void {
  isOpen = next
  for (const watcher of watchers) watcher()
}

export const openPalette = () => set(true)
export const closePalette = () => set(false)

export function usePaletteOpen(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    () => isOpen,
  )
}

addEventListener('keydown', (event) => {
  if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
  // Ctrl-K is the shell's own: in a terminal it takes Shift too.
  const inTerminal = event.target instanceof Element && event.target.closest('[data-own-keys]') !== null
  if (inTerminal && !event.shiftKey && !event.metaKey) return
  event.preventDefault()
  // Another dialog asks something first: what is behind it must not be reached.
  if (isOpen || !isPopupOpen()) set(!isOpen)
})
