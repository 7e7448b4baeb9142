// What can be done with a unit, as the items of its menu.

import type { Contract } from '@berth/sdk'
import { whyNot } from '../api/unit-can.ts'
import type { MenuItem } from '../ui/menu-item.ts'
import type { QuickAction } from './actions.ts'

type Unit = Contract.Unit

export function unitMenu(
  unit: Unit,
  {
    open,
    run,
    stop,
    destroy,
  }: {
    open?: (unit: Unit) => void
    run: (action: QuickAction) => void
    stop: () => void
    destroy: () => void
  },
): MenuItem[] {
  const item = (action: QuickAction, label: string): MenuItem => ({
    label,
    why: whyNot(unit, action),
    onSelect: () => run(action),
  })
  return [
    ...(open ? [{ label: 'Open', onSelect: () => open(unit) }] : []),
    item('start', unit.state === 'sleeping' ? 'Wake' : 'Start'),
    item('sleep', 'Sleep now'),
    { label: 'Stop…', why: whyNot(unit, 'stop'), onSelect: stop },
    item('fork', 'Fork'),
    'line',
    { label: 'Destroy…', why: whyNot(unit, 'destroy'), onSelect: destroy, isDanger: true },
  ]
}
