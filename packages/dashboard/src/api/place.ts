// Remembers in this browser the page on which the session ended, and the slug of the last team that was opened.

const names = { place: 'berth-place', team: 'berth-team' } as const

export const keepPlace = (path: string) => localStorage.setItem(names.place, path)

/** Gives it once; null: begin at the units. Only pages of teams are places. */
export function takePlace(): string | null {
  const path = localStorage.getItem(names.place)
  localStorage.removeItem(names.place)
  return path?.startsWith('/t/') ? path : null
}

export const readTeam = () => localStorage.getItem(names.team)
export const keepTeam = (slug: string) => localStorage.setItem(names.team, slug)
