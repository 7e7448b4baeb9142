// The passwords that a create has told once, on the page of what was made, until the person says that they are kept.

import { Button } from '../ui/button.tsx'
import { Copy } from '../ui/copy.tsx'
import { keepTold, type Outputs, useTold } from './told-once.ts'
import styles from './told-once.module.css'

export function ToldOnceCard({ of }: { of: string }) {
  const outputs = useTold(of)
  if (outputs === null) return null
  return (
    <section className={styles.card} aria-label="Passwords, shown once">
      <h2>Copy these passwords now</h2>
      <p className={styles.note}>They are shown once: nobody can see them again.</p>
      <OutputList outputs={outputs} />
      <div>
        <Button kind="main" onClick={() => keepTold(of, null)}>
          I have saved them
        </Button>
      </div>
    </section>
  )
}

export function OutputList({ outputs }: { outputs: Outputs }) {
  return (
    <dl className={styles.list}>
      {Object.entries(outputs).map(([name, value]) => (
        <div key={name} className={styles.output}>
          <dt>{name}</dt>
          <dd>
            <code>{value}</code>
            <Copy text={value} label={`Copy ${name}`} />
          </dd>
        </div>
      ))}
    </dl>
  )
}
