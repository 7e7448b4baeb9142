// Asks for the name of a new folder, or for a new name of what is there.

import { useState } from 'react'
import { explain } from '../api/explain.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Field, TextInput } from '../ui/field.tsx'
import styles from './files.module.css'

export function NameDialog({
  title,
  action,
  name = '',
  taken,
  onClose,
  onName,
}: {
  title: string
  /** What the button says. */
  action: string
  /** What it is called now. */
  name?: string
  /** Names of the folder that are taken: what is called so would be replaced. */
  taken: readonly string[]
  onClose: () => void
  /** Throws if it cannot be done. */
  onName: (name: string) => Promise<void>
}) {
  const [typed, setTyped] = useState(name)
  const [error, setError] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const submit = async () => {
    const wrong = wrongIn(typed, taken)
    setError(wrong)
    if (wrong !== undefined) return
    setBusy(true)
    try {
      await onName(typed)
      onClose()
    } catch (failure) {
      setError(explain(failure).text)
      setBusy(false)
    }
  }
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <form
        className={styles.nameForm}
        aria-label={title}
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <Field label="Name" {...(error === undefined ? {} : { error })}>
          {(props) => (
            <TextInput
              {...props}
              value={typed}
              onChange={(value) => {
                setTyped(value)
                setError(undefined)
              }}
            />
          )}
        </Field>
        <div className={styles.buttons}>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            kind="main"
            busy={isBusy}
            why={typed === '' || typed === name ? 'Enter a name first.' : null}
          >
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function wrongIn(name: string, taken: readonly string[]): string | undefined {
  if (name.includes('/') || name === '.' || name === '..')
    return 'A name has no slash, and is not "." or "..".'
  return taken.includes(name) ? `There is a "${name}" in this folder already.` : undefined
}
