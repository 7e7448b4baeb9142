// What opens beside a button: the items of a menu.

import { Menu as Base } from '@base-ui/react/menu'
import type { MenuItem } from './menu-item.ts'
import styles from './menu.module.css'
import { popupRoot } from './popup-root.ts'

export function MenuBox({
  isOpen,
  anchor,
  items,
  onClose,
}: {
  isOpen: boolean
  /** It stands beside this, and gives the focus back to it. */
  anchor: HTMLElement
  items: MenuItem[]
  onClose: () => void
}) {
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal container={popupRoot()}>
        <Base.Positioner anchor={anchor} sideOffset={4} align="end" className={styles.positioner ?? ''}>
          <Base.Popup
            className={styles.popup ?? ''}
            aria-label={anchor.getAttribute('aria-label') ?? ''}
            finalFocus={() => anchor}
          >
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
    </Base.Root>
  )
}
