// The dialog that lists the keys of this page.

import { useState } from 'react'
import { Dialog } from '../ui/dialog.tsx'
import { areKeysOff, setKeysOff, useKeyGroups } from './keys.ts'
import { paletteKey } from './palette-state.ts'
import styles from './key-help.module.css'

export function KeyHelpBox({ onClose }: { onClose: () => void }) {
  const [isOff, setOff] = useState(areKeysOff)
  const groups = useKeyGroups()
  return (
    <Dialog title="Keys" isOpen onClose={onClose}>
      <div className={styles.groups}>
        {/* First, since it has the focus: the list begins at its top. */}
        <label>
          <input
            type="checkbox"
            checked={isOff}
            onChange={(event) => {
              setKeysOff(event.target.checked)
              setOff(event.target.checked)
            }}
          />{' '}
          Turn off single-letter keys
        </label>
        <p className={styles.row}>
          <span>Search and commands</span> <kbd>{paletteKey}</kbd>
        </p>
        {groups.map(({ title, bindings }) => {
          const withKeys = bindings.filter(({ keys }) => keys !== null)
          return (
            withKeys.length > 0 && (
              <section key={title}>
                <h2>{title}</h2>
                {withKeys.map(({ keys, label }) => (
                  <p key={keys} className={styles.row}>
                    <span>{label}</span> <kbd>{keys}</kbd>
                  </p>
                ))}
              </section>
            )
          )
        })}
      </div>
    </Dialog>
  )
}
