// A menu. Lists have one for all their rows: a menu in each row costs five times the script of a scroll.

import { Menu as Base } from '@base-ui/react/menu'
import type { ReactNode } from 'react'
import { popupRoot } from './popup-root.ts'
import styles from './menu.module.css'

export type MenuItem =
  | { label: string; onSelect: () => void; why?: string | null; hint?: string; isDanger?: boolean }
  | 'line'

export type MenuHandle<T> = ReturnType<typeof Base.createHandle<T>>
export function createMenu<T>(): MenuHandle<T> {
  return Base.createHandle<T>()
}

/** What opens the menu of a list at one of its rows. */
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
  return (
    <Base.Trigger
      handle={menu}
      payload={payload}
      className={styles.trigger ?? ''}
      aria-label={label}
      tabIndex={isTabStop ? 0 : -1}
    >
      {children}
    </Base.Trigger>
  )
}

export function SharedMenu<T>({ menu, items }: { menu: MenuHandle<T>; items: (payload: T) => MenuItem[] }) {
  return (
    <Base.Root handle={menu}>
      {({ payload }) => <Popup items={payload === undefined ? [] : items(payload as T)} />}
    </Base.Root>
  )
}

export function Menu({ label, children, items }: { label: string; children: ReactNode; items: MenuItem[] }) {
  return (
    <Base.Root>
      <Base.Trigger className={styles.trigger ?? ''} aria-label={label}>
        {children}
      </Base.Trigger>
      <Popup items={items} />
    </Base.Root>
  )
}

function Popup({ items }: { items: MenuItem[] }) {
  return (
    <Base.Portal container={popupRoot()}>
      <Base.Positioner sideOffset={4} align="end" className={styles.positioner ?? ''}>
        <Base.Popup className={styles.popup ?? ''}>
          {items.map((item, at) =>
            item === 'line' ? (
              <Base.Separator key={at} className={styles.line ?? ''} />
            ) : (
              <Base.Item
                key={item.label}
                className={`${styles.item} ${item.isDanger ? styles.danger : ''}`}
                disabled={Boolean(item.why)}
                onClick={item.onSelect}
              >
                <span>
                  {item.label}
                  {item.why && <small className={styles.why}>{item.why}</small>}
                </span>
                {item.hint !== undefined && <kbd className={styles.hint}>{item.hint}</kbd>}
              </Base.Item>
            ),
          )}
        </Base.Popup>
      </Base.Positioner>
    </Base.Portal>
  )
}
