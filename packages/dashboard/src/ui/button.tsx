// A button, and a link that looks like one. A disabled button stays in its place and says why.

import type { ButtonHTMLAttributes, ReactNode } from 'react'
import { useId } from 'react'
import styles from './button.module.css'

type Kind = 'plain' | 'main' | 'danger' | 'quiet'

export function buttonClass(kind: Kind = 'plain', extra = ''): string {
  return [styles.button, styles[kind], extra].join(' ')
}

export function Button({
  kind = 'plain',
  why = null,
  busy = false,
  hint,
  children,
  onClick,
  ...rest
}: {
  kind?: Kind
  /** Why it cannot be pressed; null: it can. */
  why?: string | null
  busy?: boolean
  /** The key that does the same. */
  hint?: string
  children: ReactNode
} & ButtonHTMLAttributes<HTMLButtonElement>) {
  const id = useId()
  const isOff = why !== null || busy
  return (
    <>
      <button
        type="button"
        {...rest}
        className={buttonClass(kind)}
        aria-disabled={isOff || undefined}
        aria-describedby={why === null ? undefined : id}
        aria-busy={busy || undefined}
        title={why ?? rest.title}
        onClick={(event) => {
          if (isOff) event.preventDefault()
          else onClick?.(event)
        }}
      >
        {children}
        {hint !== undefined && (
          <kbd className={styles.hint} aria-hidden="true">
            {hint}
          </kbd>
        )}
      </button>
      {why !== null && (
        <span id={id} className="visually-hidden">
          {why}
        </span>
      )}
    </>
  )
}

export function IconButton({
  label,
  children,
  ...rest
}: { label: string; children: ReactNode } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button type="button" {...rest} className={styles.icon} aria-label={label} title={label}>
      {children}
    </button>
  )
}
