// The unit whose pages are shown.

import type { Contract } from '@berth/sdk'
import { createContext, useContext } from 'react'

export const UnitContext = createContext<Contract.Unit | null>(null)

/** Throws outside of a unit's pages. */
export function useUnit(): Contract.Unit {
  const unit = useContext(UnitContext)
  if (unit === null) throw new Error('This is no page of a unit.')
  return unit
}
