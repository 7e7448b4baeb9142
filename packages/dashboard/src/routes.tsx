// One list of pages. Each but the first is loaded when it is opened; every page of a team is below its name in the address.

import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from '@tanstack/react-router'
import { readAuditSearch } from './audit/search.ts'
import { readRecipesSearch } from './recipes/search.ts'
import { readSpendSearch } from './spend/search.ts'
import { PageError } from './shell/page-error.tsx'
import { NotHere } from './shell/not-here.tsx'
import { Shell } from './shell/shell.tsx'
import { ToTeam } from './start/to-team.tsx'
import { readFilesSearch } from './unit/search.ts'
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

const newUnit = createRoute({
  getParentRoute: () => team,
  path: '/units/new',
  component: lazyRouteComponent(() => import('./new-unit/new-unit-page.tsx'), 'NewUnitPage'),
})

const unit = createRoute({
  getParentRoute: () => team,
  path: '/units/$id',
  component: lazyRouteComponent(() => import('./unit/unit-page.tsx'), 'UnitPage'),
})

const overview = createRoute({
  getParentRoute: () => unit,
  path: '/',
  component: lazyRouteComponent(() => import('./unit/overview.tsx'), 'Overview'),
})

const terminal = createRoute({
  getParentRoute: () => unit,
  path: '/terminal',
  component: lazyRouteComponent(() => import('./unit/terminal-tab.tsx'), 'TerminalTab'),
})

const logs = createRoute({
  getParentRoute: () => unit,
  path: '/logs',
  component: lazyRouteComponent(() => import('./unit/logs-tab.tsx'), 'LogsTab'),
})

const metrics = createRoute({
  getParentRoute: () => unit,
  path: '/metrics',
  component: lazyRouteComponent(() => import('./unit/metrics-tab.tsx'), 'MetricsTab'),
})

const files = createRoute({
  getParentRoute: () => unit,
  path: '/files',
  validateSearch: readFilesSearch,
  component: lazyRouteComponent(() => import('./unit/files-tab.tsx'), 'FilesTab'),
})

const forks = createRoute({
  getParentRoute: () => unit,
  path: '/forks',
  component: lazyRouteComponent(() => import('./unit/forks-tab.tsx'), 'ForksTab'),
})

const activity = createRoute({
  getParentRoute: () => unit,
  path: '/activity',
  component: lazyRouteComponent(() => import('./unit/activity-tab.tsx'), 'ActivityTab'),
})

const settings = createRoute({
  getParentRoute: () => unit,
  path: '/settings',
  component: lazyRouteComponent(() => import('./unit/settings-tab.tsx'), 'SettingsTab'),
})

const stacks = createRoute({
  getParentRoute: () => team,
  path: '/stacks',
  component: lazyRouteComponent(() => import('./stacks/stacks-page.tsx'), 'StacksPage'),
})

const stack = createRoute({
  getParentRoute: () => team,
  path: '/stacks/$name',
  component: lazyRouteComponent(() => import('./stacks/stack-page.tsx'), 'StackPage'),
})

const recipes = createRoute({
  getParentRoute: () => team,
  path: '/recipes',
  validateSearch: readRecipesSearch,
  component: lazyRouteComponent(() => import('./recipes/recipes-page.tsx'), 'RecipesPage'),
})

const recipe = createRoute({
  getParentRoute: () => team,
  path: '/recipes/$name',
  component: lazyRouteComponent(() => import('./recipes/recipe-page.tsx'), 'RecipePage'),
})

const agents = createRoute({
  getParentRoute: () => team,
  path: '/agents',
  component: lazyRouteComponent(() => import('./agents/agents-page.tsx'), 'AgentsPage'),
})

const newKey = createRoute({
  getParentRoute: () => team,
  path: '/agents/new',
  component: lazyRouteComponent(() => import('./agents/new-key-page.tsx'), 'NewKeyPage'),
})

const agent = createRoute({
  getParentRoute: () => team,
  path: '/agents/$id',
  component: lazyRouteComponent(() => import('./agents/agent-page.tsx'), 'AgentPage'),
})

const spend = createRoute({
  getParentRoute: () => team,
  path: '/spend',
  validateSearch: readSpendSearch,
  component: lazyRouteComponent(() => import('./spend/spend-page.tsx'), 'SpendPage'),
})

const audit = createRoute({
  getParentRoute: () => team,
  path: '/audit',
  validateSearch: readAuditSearch,
  component: lazyRouteComponent(() => import('./audit/audit-page.tsx'), 'AuditPage'),
})

const people = createRoute({
  getParentRoute: () => team,
  path: '/team',
  component: lazyRouteComponent(() => import('./team/team-page.tsx'), 'TeamPage'),
})

const credits = createRoute({
  getParentRoute: () => team,
  path: '/credits',
  component: lazyRouteComponent(() => import('./credits/credits-page.tsx'), 'CreditsPage'),
})

const account = createRoute({
  getParentRoute: () => team,
  path: '/account',
  component: lazyRouteComponent(() => import('./account/account-page.tsx'), 'AccountPage'),
})

const help = createRoute({
  getParentRoute: () => team,
  path: '/help',
  component: lazyRouteComponent(() => import('./help/help-page.tsx'), 'HelpPage'),
})

const routes = root.addChildren([
  start,
  team.addChildren([
    teamStart,
    unitsRoute,
    newUnit,
    unit.addChildren([overview, terminal, logs, metrics, files, forks, activity, settings]),
    stacks,
    stack,
    recipes,
    recipe,
    agents,
    newKey,
    agent,
    spend,
    audit,
    people,
    credits,
    account,
    help,
  ]),
])

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
