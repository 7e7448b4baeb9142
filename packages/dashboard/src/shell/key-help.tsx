// What the keys of this page are.

import { useState } from 'react'
import { Dialog } from '../ui/dialog.tsx'
import { areKeysOff, setKeysOff, useKeyGroups, useKeys } from './keys.ts'
import { paletteKey } from './palette-state.ts'
import styles from './key-help.module.css'

export function KeyHelp() {
  const [isOpen, setOpen] = useState(false)
  const [isOff, setOff] = useState(areKeysOff)
  const groups = useKeyGroups()
  useKeys('Everywhere', [{ keys: '?', label: 'These keys', run: () => setOpen(true) }])
  return (
    <Dialog title="Keys" isOpen={isOpen} onClose={() => setOpen(false)}>
      <div className={styles.groups}>
        <p className={styles.row}>
          <span>Search, and what can be done here</span> <kbd>{paletteKey}</kbd>
        </p>
        {groups.map(({ title, bindings }) => (
          <section key={title}>
            <h2>{title}</h2>
            {bindings.map(({ keys, label }) => (
              <p key={keys} className={styles.row}>
                <span>{label}</span> <kbd>{keys}</kbd>
              </p>
            ))}
          </section>
        ))}
        <label>
          <input
            type="checkbox"
            checked={isOff}
            onChange={(event) => {
              setKeysOff(event.target.checked)
              setOff(event.target.checked)
            }}
          />{' '}
          No single keys
        </label>
      </div>
    </Dialog>
  )
}
