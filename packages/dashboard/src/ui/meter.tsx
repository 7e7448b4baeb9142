// A bar that shows how much of a limit is used. The numbers beside it say the same.

import styles from './meter.module.css'

export function Meter({ value, max, label }: { value: number; max: number; label: string }) {
  const share = max > 0 ? Math.min(1, value / max) : value > 0 ? 1 : 0
  return (
    <svg className={styles.meter} viewBox="0 0 48 6" role="img" aria-label={label} preserveAspectRatio="none">
      <rect className={styles.rest} width="48" height="6" rx="3" />
      <rect className={share >= 0.9 ? styles.near : styles.used} width={48 * share} height="6" rx="3" />
    </svg>
  )
}
