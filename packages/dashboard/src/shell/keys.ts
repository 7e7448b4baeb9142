// Keys of the page: one listener, and a list that `?` shows. Single keys rest while a field, a menu, a dialog or a
// terminal has the focus, and can be switched off. No key by itself changes a unit or a stack: a slip would stop a server.
// Such an action has no key, and is found in the palette.

import { useEffect, useRef, useSyncExternalStore } from 'react'

export type Binding = {
  /** `n`, or a sequence such as `g u`; null for what the palette alone offers. */
  keys: string | null
  label: string
  run: () => void
}

export type KeyGroup = { title: string; bindings: Binding[] }

const groups = new Map<symbol, KeyGroup>()
const watchers = new Set<() => void>()
let snapshot: KeyGroup[] = []

function changed(): void {
  snapshot = [...groups.values()]
  for (const watcher of watchers) watcher()
}

/** Binds keys, and offers in the palette, as long as the component is there. */
export function useKeys(title: string, bindings: Binding[]): void {
  const latest = useRef(bindings)
  latest.current = bindings
  const shape = bindings.map(({ keys, label }) => `${keys ?? ''}\t${label}`).join('\n')
  useEffect(() => {
    const name = Symbol(title)
    const bound = shape
      .split('\n')
      .filter(Boolean)
      .map((line, at): Binding => {
        const [keys = '', label = ''] = line.split('\t')
        return { keys: keys || null, label, run: () => latest.current[at]?.run() }
      })
    groups.set(name, { title, bindings: bound })
    changed()
    return () => {
      groups.delete(name)
      changed()
    }
  }, [title, shape])
}

export function useKeyGroups(): KeyGroup[] {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    () => snapshot,
  )
}

const offName = 'berth-keys-off'
export const areKeysOff = () => localStorage.getItem(offName) !== null
export function setKeysOff(isOff: boolean): void {
  if (isOff) localStorage.setItem(offName, 'yes')
  else localStorage.removeItem(offName)
}

let begun = ''
let begunAt = 0

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || areKeysOff()) return
  if (event.key === 'Shift' || isTaken(event.target)) return
  const isSequence = begun !== '' && Date.now() - begunAt < 1200
  const typed = isSequence ? `${begun} ${event.key}` : event.key
  begun = ''
  const all = snapshot.flatMap(({ bindings }) => bindings)
  const found = all.findLast(({ keys }) => keys === typed)
  if (found) {
    event.preventDefault()
    found.run()
  } else if (all.some(({ keys }) => keys?.startsWith(`${event.key} `))) {
    begun = event.key
    begunAt = Date.now()
  }
})

/** A dialog or a menu has the page until it is closed. Messages have the role of a dialog, and leave the page usable. */
export const isPopupOpen = () =>
  [...document.querySelectorAll('[role=dialog], [role=alertdialog], [role=menu]')].some(
    (popup) => popup.closest('[data-messages]') === null,
  )

/** Whether the keys belong to what has the focus. */
function isTaken(target: EventTarget | null): boolean {
  if (isPopupOpen()) return true
  return (
    target instanceof Element &&
    target.closest('input, textarea, select, [contenteditable], [data-own-keys]') !== null
  )
}
