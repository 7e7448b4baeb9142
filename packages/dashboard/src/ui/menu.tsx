// A menu, and the button that opens it. The menu itself is loaded when it may be opened: it would be a quarter of all that
// the first page needs. Lists have one for all their rows.

import { lazy, type ReactNode, Suspense, useRef, useState, useSyncExternalStore } from 'react'
import type { MenuItem } from './menu-item.ts'
import styles from './menu.module.css'

type Opened<T> = { payload: T; anchor: HTMLElement }

export type MenuHandle<T> = {
  /** Null while it is closed. */
  opened: () => Opened<T> | null
  set: (opened: Opened<T> | null) => void
  watch: (watcher: () => void) => () => void
}

const loadBox = async () => ({ default: (await import('./menu-box.tsx')).MenuBox })
const MenuBox = lazy(loadBox)

export function createMenu<T>(): MenuHandle<T> {
  let opened: Opened<T> | null = null
  const watchers = new Set<() => void>()
  return {
    opened: () => opened,
    set: (next) => {
      opened = next
      for (const watcher of watchers) watcher()
    },
    watch: (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
  }
}

/** What opens the menu, of a list at one of its rows. */
export function MenuTrigger<T>({
  menu,
  payload,
  label,
  isTabStop = true,
  children,
}: {
  menu: MenuHandle<T>
  payload: T
  label: string
  /** Of a long list only one row is in the order of Tab. */
  isTabStop?: boolean
  children: ReactNode
}) {
  const button = useRef<HTMLButtonElement>(null)
  const isOpen = useSyncExternalStore(
    menu.watch,
    () => button.current !== null && menu.opened()?.anchor === button.current,
  )
  const load = () => void loadBox().catch(() => {})
  const open = () => {
    if (button.current) menu.set({ payload, anchor: button.current })
  }
  return (
    <button
      ref={button}
      type="button"
      className={styles.trigger}
      aria-label={label}
      aria-haspopup="menu"
      aria-expanded={isOpen}
      data-popup-open={isOpen ? '' : undefined}
      tabIndex={isTabStop ? 0 : -1}
      onPointerEnter={load}
      onFocus={load}
      onClick={open}
      onKeyDown={(event) => {
        if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
        event.preventDefault()
        open()
      }}
    >
      {children}
    </button>
  )
}

export function SharedMenu<T>({ menu, items }: { menu: MenuHandle<T>; items: (payload: T) => MenuItem[] }) {
  const opened = useSyncExternalStore(menu.watch, menu.opened)
  // While it closes, it stays where it was.
  const [last, setLast] = useState(opened)
  if (opened !== null && opened !== last) setLast(opened)
  const shown = opened ?? last
  if (shown === null) return null
  return (
    <Suspense>
      <MenuBox
        isOpen={opened !== null}
        anchor={shown.anchor}
        items={items(shown.payload)}
        onClose={() => menu.set(null)}
      />
    </Suspense>
  )
}

export function Menu({ label, children, items }: { label: string; children: ReactNode; items: MenuItem[] }) {
  const [menu] = useState(() => createMenu<null>())
  return (
    <>
      <MenuTrigger menu={menu} payload={null} label={label}>
        {children}
      </MenuTrigger>
      <SharedMenu menu={menu} items={() => items} />
    </>
  )
}
