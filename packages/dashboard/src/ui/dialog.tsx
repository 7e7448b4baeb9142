// Dialogs, and the confirmation before something is lost.

import { AlertDialog } from '@base-ui/react/alert-dialog'
import { Dialog as Base } from '@base-ui/react/dialog'
import { type ReactNode, useId, useState } from 'react'
import { Button, buttonClass } from './button.tsx'
import { popupRoot } from './popup-root.ts'
import styles from './dialog.module.css'

export function Dialog({
  title,
  isOpen,
  onClose,
  children,
}: {
  title: string
  isOpen: boolean
  onClose: () => void
  children: ReactNode
}) {
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal container={popupRoot()}>
        <Base.Backdrop className={styles.veil ?? ''} />
        <Base.Popup className={styles.popup ?? ''}>
          <Base.Title className={styles.title ?? ''}>{title}</Base.Title>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

/** Asks before something is lost. With `word`, that word has to be typed. Stays open, with the reason, where it fails. */
export function Confirm({
  title,
  action,
  word = null,
  isOpen,
  onClose,
  onConfirm,
  children,
}: {
  title: string
  /** What the button says. */
  action: string
  word?: string | null
  isOpen: boolean
  onClose: () => void
  onConfirm: () => Promise<void>
  children: ReactNode
}) {
  const [typed, setTyped] = useState('')
  const [isBusy, setBusy] = useState(false)
  const id = useId()
  const close = () => {
    setTyped('')
    onClose()
  }
  const confirm = async () => {
    setBusy(true)
    try {
      await onConfirm()
      close()
    } finally {
      setBusy(false)
    }
  }
  return (
    <AlertDialog.Root open={isOpen} onOpenChange={(open) => !open && close()}>
      <AlertDialog.Portal container={popupRoot()}>
        <AlertDialog.Backdrop className={styles.veil ?? ''} />
        <AlertDialog.Popup className={styles.popup ?? ''}>
          <AlertDialog.Title className={styles.title ?? ''}>{title}</AlertDialog.Title>
          <AlertDialog.Description className={styles.text ?? ''} render={<div />}>
            {children}
          </AlertDialog.Description>
          {word !== null && (
            <p className={styles.word}>
              <label htmlFor={id}>
                Type <b>{word}</b> to go on
              </label>
              <input
                id={id}
                className={styles.input}
                value={typed}
                autoComplete="off"
                onChange={(event) => setTyped(event.target.value)}
              />
            </p>
          )}
          <div className={styles.buttons}>
            <AlertDialog.Close className={buttonClass('plain')}>Cancel</AlertDialog.Close>
            <Button
              kind="danger"
              busy={isBusy}
              why={word !== null && typed !== word ? `Type ${word} first.` : null}
              onClick={() => void confirm()}
            >
              {action}
            </Button>
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  )
}
