// A button that copies text, and a block of code with such a button.

import { useRef, useState } from 'react'
import Check from 'lucide-react/icons/check'
import CopyIcon from 'lucide-react/icons/copy'
import { IconButton } from './button.tsx'
import styles from './copy.module.css'

export function Copy({ text, label }: { text: string; label: string }) {
  const [isDone, setDone] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  const copy = async () => {
    // Browsers have no clipboard for pages that come over plain HTTP from another machine.
    const clipboard = navigator.clipboard as Clipboard | undefined
    if (clipboard) await clipboard.writeText(text)
    else {
      field.current?.select()
      document.execCommand('copy')
    }
    setDone(true)
    setTimeout(() => setDone(false), 1500)
  }
  return (
    <span className={styles.copy}>
      <textarea
        ref={field}
        className="visually-hidden"
        readOnly
        value={text}
        tabIndex={-1}
        aria-hidden="true"
      />
      <IconButton label={isDone ? 'Copied' : label} onClick={() => void copy()}>
        {isDone ? <Check aria-hidden="true" /> : <CopyIcon aria-hidden="true" />}
      </IconButton>
    </span>
  )
}

/** A short text with its button, such as an id. */
export function Copied({ text, label }: { text: string; label: string }) {
  return (
    <span className={styles.inline}>
      <code>{text}</code>
      <Copy text={text} label={label} />
    </span>
  )
}

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div className={styles.block}>
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <div className={styles.corner}>
        <Copy text={text} label={`Copy ${label}`} />
      </div>
    </div>
  )
}
