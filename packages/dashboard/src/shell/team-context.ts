// The team whose pages are shown, and the signed-in person.

import type { Contract } from '@berth/sdk'
import { createContext, useContext } from 'react'

export type Here = { team: Contract.Team; me: Contract.Me }

export const HereContext = createContext<Here | null>(null)

/** Throws outside of a team's pages. */
export function useHere(): Here {
  const here = useContext(HereContext)
  if (here === null) throw new Error('This is no page of a team.')
  return here
}

export const useTeam = () => useHere().team
