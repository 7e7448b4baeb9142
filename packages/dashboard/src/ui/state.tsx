// Shows the state of a unit as a shape and a word, never by colour alone.

import type { UnitState } from '../../../../src/contract/states.ts'
import styles from './state.module.css'

const kinds = {
  running: 'running',
  sleeping: 'sleeping',
  creating: 'moving',
  starting: 'moving',
  stopping: 'moving',
  destroying: 'moving',
  stopped: 'stopped',
  error: 'error',
  destroyed: 'destroyed',
} as const satisfies Record<UnitState, string>

const shapes = {
  running: <circle cx="6" cy="6" r="4.5" fill="currentColor" />,
  sleeping: <path d="M9.8 7.9A4.6 4.6 0 0 1 4.1 2.200 4.600 4.600 0 1 0 9.800 7.900Z" fill="currentColor" />,
  moving: (
    <g fill="none" stroke="currentColor" strokeWidth="1.6">
      <circle cx="6" cy="6" r="4.5" opacity="0.35" />
      <path d="M6 1.5A4.500 4.500 0 0 1 10.500 6" strokeLinecap="round" />
    </g>
  ),
  stopped: (
    <rect
      x="2.2"
      y="2.2"
      width="7.6"
      height="7.6"
      rx="1.5"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
    />
  ),
  error: <path d="M6 1.500 11 10.500H1Z" fill="currentColor" />,
  destroyed: (
    <path d="M2.500 9.500 9.500 2.500" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" />
  ),
}

export function StateShape({ state }: { state: UnitState }) {
  const kind = kinds[state]
  return (
    <svg viewBox="0 0 12 12" className={`${styles.shape} ${styles[kind]}`} aria-hidden="true">
      {shapes[kind]}
    </svg>
  )
}

export function State({ state, quiet = false }: { state: UnitState; quiet?: boolean }) {
  return (
    <span className={styles.state}>
      <StateShape state={state} />
      <span className={quiet ? 'visually-hidden' : ''}>{state}</span>
    </span>
  )
}
