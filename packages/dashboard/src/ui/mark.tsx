// A mark of an image or a recipe: two letters of ours on a colour that its name chooses.

import styles from './mark.module.css'

const letters: Readonly<Record<string, string>> = {
  base: 'Ag',
  python: 'Py',
  node: 'Js',
  postgres: 'Pg',
  mariadb: 'Ma',
  mongodb: 'Mo',
  redis: 'Re',
  nginx: 'Nx',
  static: 'Ht',
  debian: 'De',
  docker: 'Do',
  etcd: 'Et',
  neo4j: 'Ne',
  rabbitmq: 'Ra',
  'claude-code': 'Cc',
  codex: 'Cx',
  'codex-executor': 'Ce',
  'codex-environment': 'Cn',
  'web-with-postgres': 'Wp',
}
const hues = 6

export function Mark({ name }: { name: string }) {
  const sum = name.length * 5 + name.charCodeAt(0) + name.charCodeAt(name.length - 1)
  const text = letters[name] ?? `${name.slice(0, 1).toUpperCase()}${name.slice(1, 2)}`
  return (
    <span className={`${styles.mark} ${styles[`hue${sum % hues}`]}`} aria-hidden="true">
      {text}
    </span>
  )
}
