// Images to start from, as tiles; the field below takes any other.

import { Mark } from '../ui/mark.tsx'
import styles from './new-unit.module.css'

const images = [
  { image: 'berth.local/python:3.11', mark: 'python', title: 'Python 3.11' },
  { image: 'berth.local/node:24', mark: 'node', title: 'Node 24' },
  { image: 'berth.local/base:12', mark: 'base', title: 'Agent workspace' },
  { image: 'berth.local/debian:12', mark: 'debian', title: 'Debian 12' },
  { image: 'berth.local/nginx:1.22', mark: 'nginx', title: 'nginx 1.22' },
] as const

export function ImageTiles({ image, onChoose }: { image: string; onChoose: (image: string) => void }) {
  return (
    <div role="radiogroup" aria-label="Start from" className={styles.tiles}>
      {images.map((each) => (
        <label key={each.image} className={styles.tile}>
          <input
            type="radio"
            name="start-from"
            checked={each.image === image}
            onChange={() => onChoose(each.image)}
          />
          <Mark name={each.mark} />
          {each.title}
        </label>
      ))}
    </div>
  )
}
