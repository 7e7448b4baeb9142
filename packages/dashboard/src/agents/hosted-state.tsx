// The state of an environment and of a session, as a shape and a word, never by colour alone.

import type { Contract } from '@berth/sdk'
import type { UnitState } from '../../../../src/contract/states.ts'
import { StateShape } from '../ui/state.tsx'
import { type Hosted, stateTexts } from './hosted-text.ts'
import styles from './agents.module.css'

/** The shapes are those of units. */
const shapes = {
  off: 'stopped',
  starting: 'starting',
  waiting: 'running',
  full: 'running',
  failing: 'error',
  refused: 'error',
} as const satisfies Record<Hosted['state'], UnitState>

const sessionShapes = {
  working: 'running',
  waiting: 'sleeping',
  refused: 'error',
  ended: 'destroyed',
} as const satisfies Record<Contract.HostedSession['state'], UnitState>

export function HostedState({ hosted: { state } }: { hosted: Hosted }) {
  return (
    <span className={styles.hostedState}>
      <StateShape state={shapes[state]} />
      {stateTexts[state]}
    </span>
  )
}

export function SessionState({ state }: { state: Contract.HostedSession['state'] }) {
  return (
    <span className={styles.hostedState}>
      <StateShape state={sessionShapes[state]} />
      {state}
    </span>
  )
}
