// One list of pages. Each but the first is loaded when it is opened; every page of a team is below its name in the address.

import { createRootRoute, createRoute, createRouter, Outlet } from '@tanstack/react-router'
import { PageError } from './shell/page-error.tsx'
import { NotHere } from './shell/not-here.tsx'
import { Shell } from './shell/shell.tsx'
import { ToTeam } from './start/to-team.tsx'
import { readUnitsSearch } from './units/search.ts'
import { UnitsPage } from './units/units-page.tsx'

const root = createRootRoute({ component: Outlet, notFoundComponent: NotHere, errorComponent: PageError })

const start = createRoute({ getParentRoute: () => root, path: '/t', component: ToTeam })

export const team = createRoute({ getParentRoute: () => root, path: '/t/$team', component: Shell })

const teamStart = createRoute({ getParentRoute: () => team, path: '/', component: ToTeam })

export const unitsRoute = createRoute({
  getParentRoute: () => team,
  path: '/units',
  component: UnitsPage,
  validateSearch: readUnitsSearch,
})

const routes = root.addChildren([start, team.addChildren([teamStart, unitsRoute])])

export const router = createRouter({
  routeTree: routes,
  defaultPreload: 'intent',
  scrollRestoration: false,
  defaultErrorComponent: PageError,
  defaultNotFoundComponent: NotHere,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
