// A harbour from above, drawn by us: a quay, its piers, a ship that works, one that sleeps, and a free berth.

import styles from './harbour.module.css'

const piers = [36, 166, 296, 426]

export function Harbour() {
  return (
    <svg className={styles.harbour} viewBox="0 0 480 200" aria-hidden="true" focusable="false">
      <g className={styles.water}>
        <path d="M8 186q10-6 20 0t20 0 20 0 20 0" />
        <path d="M200 190q10-6 20 0t20 0 20 0" />
        <path d="M372 184q10-6 20 0t20 0 20 0 20 0" />
      </g>
      <rect className={styles.quay} x="0.75" y="0.75" width="478.5" height="30" rx="3" />
      {piers.map((x) => (
        <g key={x}>
          <path className={styles.pier} d={`M${x} 31v118q0 4 4 4h10q4 0 4-4V31`} />
          {[52, 92, 132].map((y) => (
            <circle key={y} className={styles.bollard} cx={x + 9} cy={y} r="2" />
          ))}
        </g>
      ))}
      {[58, 74, 90, 106, 214, 230, 246, 330].map((x) => (
        <rect key={x} className={styles.box} x={x} y="9" width="12" height="14" rx="1.5" />
      ))}
      <Ship at={110} name="running">
        {[58, 76, 94].map((y) =>
          [-13, 1].map((x) => (
            <rect key={x} className={styles.cargo} x={x} y={y} width="12" height="14" rx="1.5" />
          )),
        )}
      </Ship>
      <Ship at={240} name="sleeping">
        <path className={styles.cargo} d="M8.500 90A11 11 0 0 1-5.500 76 11 11 0 1 0 8.500 90Z" />
      </Ship>
      <Ship at={370} name="free">
        <path className={styles.plus} d="M0 78v20M-10 88h20" />
      </Ship>
    </svg>
  )
}

function Ship({
  at,
  name,
  children,
}: {
  at: number
  name: 'running' | 'sleeping' | 'free'
  children: React.ReactNode
}) {
  return (
    <g transform={`translate(${at} 0)`} className={styles[name]}>
      {name !== 'free' && (
        <path className={styles.rope} d="M-24 56l-23-8M-24 122l-23 8M24 56l23-8M24 122l23 8" />
      )}
      <path className={styles.hull} d="M-18 44h36q6 0 6 6v68q0 26-24 46-24-20-24-46V50q0-6 6-6Z" />
      {children}
    </g>
  )
}
