// The outputs of a recipe: the address, and generated passwords, which only this one answer has.

import { Copy } from '../ui/copy.tsx'
import styles from './recipes.module.css'

export function Outputs({ outputs }: { outputs: Readonly<Record<string, string>> }) {
  const told = Object.entries(outputs)
  if (told.length === 0) return null
  return (
    <section className={styles.outputs}>
      <h2>Shown this once</h2>
      <dl>
        {told.map(([name, value]) => (
          <div key={name} className={styles.output}>
            <dt>{name}</dt>
            <dd>
              <code>{value}</code>
              <Copy text={value} label={`Copy ${name}`} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
