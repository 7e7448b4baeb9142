// The picture of a stack whose units have to do with each other. The table below it says the same, for people who cannot
// see the picture.

import type { Contract } from '@berth/sdk'
import { useId } from 'react'
import { type Arrow, box, type Box, layOut, MAX_BOXES } from './graph.ts'
import styles from './stacks.module.css'

const MARGIN = 8

export function StackGraph({
  units,
  arrows,
  onOpen,
}: {
  units: readonly Contract.Unit[]
  arrows: readonly Arrow[]
  onOpen: (id: string) => void
}) {
  const id = useId()
  if (arrows.length === 0 || units.length > MAX_BOXES) return null
  const { boxes, width, height } = layOut(units, arrows)
  const byId = new Map(boxes.map((each) => [each.id, each]))
  const view = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN]
  return (
    <div className={styles.graph}>
      <svg viewBox={view.join(' ')} width={view[2]} height={view[3]} aria-hidden="true">
        <marker id={id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0 0 8 4 0 8Z" className={styles.tip} />
        </marker>
        {arrows.map((arrow) => (
          <Line key={`${arrow.kind}${arrow.from}${arrow.to}`} arrow={arrow} boxes={byId} marker={id} />
        ))}
        {units.map((unit) => (
          <UnitBox key={unit.id} unit={unit} at={byId.get(unit.id)} onOpen={onOpen} />
        ))}
      </svg>
    </div>
  )
}

function Line({ arrow, boxes, marker }: { arrow: Arrow; boxes: ReadonlyMap<string, Box>; marker: string }) {
  const [from, to] = [boxes.get(arrow.from), boxes.get(arrow.to)]
  if (!from || !to) return null
  const isSecret = arrow.kind === 'secret'
  const isRight = to.x > from.x
  const y = box.height / 2 + (isSecret ? 10 : -4)
  const start = { x: from.x + (isRight || to.x === from.x ? box.width : 0), y: from.y + y }
  const end = { x: to.x + (isRight ? 0 : box.width), y: to.y + y }
  const bend = isRight ? (end.x - start.x) / 2 : to.x === from.x ? 48 : -48
  const path = `M${start.x} ${start.y} C${start.x + bend} ${start.y} ${end.x - (isRight ? bend : -bend)} ${end.y} ${end.x} ${end.y}`
  return (
    <g>
      <path
        d={path}
        className={isSecret ? styles.shares : styles.arrow}
        markerEnd={isSecret ? undefined : `url(#${marker})`}
      />
      <text
        className={styles.label}
        x={(start.x + end.x) / 2}
        y={(start.y + end.y) / 2 - (isSecret ? -14 : 6)}
      >
        {shortened(arrow.label, 18)}
      </text>
    </g>
  )
}

function UnitBox({
  unit,
  at,
  onOpen,
}: {
  unit: Contract.Unit
  at: Box | undefined
  onOpen: (id: string) => void
}) {
  if (!at) return null
  return (
    <g transform={`translate(${at.x} ${at.y})`} className={styles.box} onClick={() => onOpen(unit.id)}>
      <rect width={box.width} height={box.height} rx="8" />
      <text x="12" y="23" className={styles.boxName}>
        {shortened(unit.name, 20)}
      </text>
      <text x="12" y="42" className={styles.boxNote}>
        {unit.state} · {unit.size}
        {unit.ports[0] === undefined ? '' : ` · ${unit.ports[0]}`}
      </text>
    </g>
  )
}

const shortened = (text: string, length: number) =>
  text.length > length ? `${text.slice(0, length - 1)}…` : text
