// A labelled field of a form, with the error of its value.

import { type ReactNode, useId } from 'react'
import styles from './field.module.css'

type Props = { id: string; 'aria-describedby': string | undefined; 'aria-invalid': boolean | undefined }

export function Field({
  label,
  note,
  error,
  children,
}: {
  label: string
  note?: ReactNode
  error?: string | undefined
  /** The control, which takes these properties. */
  children: (props: Props) => ReactNode
}) {
  const id = useId()
  const described = [note ? `${id}-note` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ')
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': error === undefined ? undefined : true,
      })}
      {note !== undefined && (
        <p id={`${id}-note`} className={styles.note}>
          {note}
        </p>
      )}
      {error !== undefined && (
        <p id={`${id}-error`} className={styles.error}>
          {error}
        </p>
      )}
    </div>
  )
}

export const inputClass = styles.input ?? ''

/** One line, of which the browser knows nothing better. */
export function TextInput({
  onChange,
  ...rest
}: Props & {
  value: string
  onChange: (value: string) => void
  maxLength?: number
  autoFocus?: boolean
  inputMode?: 'numeric' | undefined
}) {
  return (
    <input
      {...rest}
      className={inputClass}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** For what is not shown while it is typed, and not kept by the browser. */
export function SecretInput({
  onChange,
  ...rest
}: Props & { value: string; onChange: (value: string) => void }) {
  return (
    <input
      {...rest}
      className={inputClass}
      type="password"
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** For a list, or text that people write in lines. */
export function LinesInput({
  onChange,
  ...rest
}: Props & { rows: number; value: string; onChange: (value: string) => void }) {
  return (
    <textarea
      {...rest}
      className={inputClass}
      spellCheck={false}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** Choices of a small closed set: the browser's own control. */
export function Select<T extends string>({
  value,
  options,
  onChange,
  ...rest
}: {
  value: T
  options: readonly { value: T; label: string }[]
  onChange: (value: T) => void
  'aria-label'?: string
  'aria-describedby'?: string | undefined
  'aria-invalid'?: boolean | undefined
  id?: string
}) {
  return (
    <select
      {...rest}
      className={`${styles.input} ${styles.select}`}
      value={value}
      onChange={(event) => onChange(event.target.value as T)}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  )
}
