// A small plot without words: bars of the last day. Steps in which nothing ran are left out.

import styles from './sparkline.module.css'

const HEIGHT = 20

export function Sparkline({ values, label }: { values: readonly (number | null)[]; label: string }) {
  const top = Math.max(1, ...values.map((value) => value ?? 0))
  return (
    <svg
      className={styles.sparkline}
      viewBox={`0 0 ${values.length * 4} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {values.map((value, step) => {
        if (value === null) return null
        const height = Math.max(1.5, (value / top) * HEIGHT)
        return <rect key={step} x={step * 4} y={HEIGHT - height} width="3" height={height} />
      })}
    </svg>
  )
}
