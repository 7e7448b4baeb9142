// What an empty team sees first, as far as it needs no data: the server shows it too (first-view.tsx).

import Database from 'lucide-react/icons/database'
import Globe from 'lucide-react/icons/globe'
import SquareTerminal from 'lucide-react/icons/square-terminal'
import type { ReactNode } from 'react'
import { buttonClass } from '../ui/button.tsx'
import { Harbour } from '../ui/harbour.tsx'
import styles from './first-run.module.css'

const tiles = [
  {
    id: 'shell',
    icon: SquareTerminal,
    title: 'Python shell',
    text: 'A terminal in a Linux machine with Python 3.11.',
    button: 'Open a shell',
  },
  {
    id: 'site',
    icon: Globe,
    title: 'Website',
    text: 'A page at a public URL that you can edit.',
    button: 'Publish a page',
  },
  {
    id: 'database',
    icon: Database,
    title: 'PostgreSQL',
    text: 'A database with its own host name and password.',
    button: 'Create a database',
  },
] as const

export function FirstHero() {
  return (
    <section className={styles.hero} aria-labelledby="first-words">
      <div className={styles.words}>
        <h2 id="first-words">Start your first unit</h2>
        <p>
          A unit is a container with a disk, a terminal and a URL. It sleeps when nobody uses it, and wakes
          with the next visit.
        </p>
      </div>
      <Harbour />
    </section>
  )
}

/** `children`: the button of a tile. */
export function TileList({ children }: { children: (tile: (typeof tiles)[number]) => ReactNode }) {
  return (
    <ul className={styles.tiles}>
      {tiles.map((tile) => (
        <li key={tile.id} className={styles.tile}>
          <tile.icon aria-hidden="true" />
          <h3>{tile.title}</h3>
          <p>{tile.text}</p>
          {children(tile)}
        </li>
      ))}
    </ul>
  )
}

/** Before there is a script: its buttons wait. */
export function FirstStill() {
  return (
    <div className={styles.page}>
      <FirstHero />
      <TileList>
        {({ title, button }) => (
          <button type="button" disabled className={buttonClass('main')} aria-label={`${button}: ${title}`}>
            {button}
          </button>
        )}
      </TileList>
    </div>
  )
}
