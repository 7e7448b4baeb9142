// One list of pages. Each but the first is loaded when it is opened; every page of a team is below its name in the address.

import { createRootRoute, createRoute, createRouter, Outlet } from '@tanstack/react-router'
import { readAuditSearch } from './audit/search.ts'
import { readRecipesSearch } from './recipes/search.ts'
import { readSpendSearch } from './spend/search.ts'
import { lazyPage } from './shell/lazy-page.ts'
import { PageError, PageErrorAlone } from './shell/page-error.tsx'
import { NotHere, NotHereAlone } from './shell/not-here.tsx'
import { Shell } from './shell/shell.tsx'
import { ToTeam } from './start/to-team.tsx'
import { readFilesSearch } from './unit/search.ts'
import { readUnitsSearch } from './units/search.ts'
import { UnitsPage } from './units/units-page.tsx'

const root = createRootRoute({
  component: Outlet,
  notFoundComponent: NotHereAlone,
  errorComponent: PageErrorAlone,
})

const start = createRoute({ getParentRoute: () => root, path: '/t', component: ToTeam })

export const team = createRoute({
  getParentRoute: () => root,
  path: '/t/$team',
  component: Shell,
  notFoundComponent: NotHere,
  errorComponent: PageErrorAlone,
})

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
  component: lazyPage(() => import('./new-unit/new-unit-page.tsx'), 'NewUnitPage'),
})

const unit = createRoute({
  getParentRoute: () => team,
  path: '/units/$id',
  component: lazyPage(() => import('./unit/unit-page.tsx'), 'UnitPage'),
})

const overview = createRoute({
  getParentRoute: () => unit,
  path: '/',
  component: lazyPage(() => import('./unit/overview.tsx'), 'Overview'),
})

const terminal = createRoute({
  getParentRoute: () => unit,
  path: '/terminal',
  component: lazyPage(() => import('./unit/terminal-tab.tsx'), 'TerminalTab'),
})

const code = createRoute({
  getParentRoute: () => unit,
  path: '/code',
  component: lazyPage(() => import('./unit/code-tab.tsx'), 'CodeTab'),
})

const logs = createRoute({
  getParentRoute: () => unit,
  path: '/logs',
  component: lazyPage(() => import('./unit/logs-tab.tsx'), 'LogsTab'),
})

const metrics = createRoute({
  getParentRoute: () => unit,
  path: '/metrics',
  component: lazyPage(() => import('./unit/metrics-tab.tsx'), 'MetricsTab'),
})

const egress = createRoute({
  getParentRoute: () => unit,
  path: '/egress',
  component: lazyPage(() => import('./unit/egress-tab.tsx'), 'EgressTab'),
})

const files = createRoute({
  getParentRoute: () => unit,
  path: '/files',
  validateSearch: readFilesSearch,
  component: lazyPage(() => import('./unit/files-tab.tsx'), 'FilesTab'),
})

const forks = createRoute({
  getParentRoute: () => unit,
  path: '/forks',
  component: lazyPage(() => import('./unit/forks-tab.tsx'), 'ForksTab'),
})

const activity = createRoute({
  getParentRoute: () => unit,
  path: '/activity',
  component: lazyPage(() => import('./unit/activity-tab.tsx'), 'ActivityTab'),
})

const settings = createRoute({
  getParentRoute: () => unit,
  path: '/settings',
  component: lazyPage(() => import('./unit/settings-tab.tsx'), 'SettingsTab'),
})

const stacks = createRoute({
  getParentRoute: () => team,
  path: '/stacks',
  component: lazyPage(() => import('./stacks/stacks-page.tsx'), 'StacksPage'),
})

const stack = createRoute({
  getParentRoute: () => team,
  path: '/stacks/$name',
  component: lazyPage(() => import('./stacks/stack-page.tsx'), 'StackPage'),
})

const recipes = createRoute({
  getParentRoute: () => team,
  path: '/recipes',
  validateSearch: readRecipesSearch,
  component: lazyPage(() => import('./recipes/recipes-page.tsx'), 'RecipesPage'),
})

const recipe = createRoute({
  getParentRoute: () => team,
  path: '/recipes/$name',
  component: lazyPage(() => import('./recipes/recipe-page.tsx'), 'RecipePage'),
})

const agents = createRoute({
  getParentRoute: () => team,
  path: '/agents',
  component: lazyPage(() => import('./agents/agents-page.tsx'), 'AgentsPage'),
})

const newKey = createRoute({
  getParentRoute: () => team,
  path: '/agents/new',
  component: lazyPage(() => import('./agents/new-key-page.tsx'), 'NewKeyPage'),
})

const agent = createRoute({
  getParentRoute: () => team,
  path: '/agents/$id',
  component: lazyPage(() => import('./agents/agent-page.tsx'), 'AgentPage'),
})

const newHosted = createRoute({
  getParentRoute: () => team,
  path: '/agents/hosted/new',
  component: lazyPage(() => import('./agents/new-hosted-page.tsx'), 'NewHostedPage'),
})

const hosted = createRoute({
  getParentRoute: () => team,
  path: '/agents/hosted/$id',
  component: lazyPage(() => import('./agents/hosted-page.tsx'), 'HostedPage'),
})

const spend = createRoute({
  getParentRoute: () => team,
  path: '/spend',
  validateSearch: readSpendSearch,
  component: lazyPage(() => import('./spend/spend-page.tsx'), 'SpendPage'),
})

const audit = createRoute({
  getParentRoute: () => team,
  path: '/audit',
  validateSearch: readAuditSearch,
  component: lazyPage(() => import('./audit/audit-page.tsx'), 'AuditPage'),
})

const people = createRoute({
  getParentRoute: () => team,
  path: '/team',
  component: lazyPage(() => import('./team/team-page.tsx'), 'TeamPage'),
})

const credits = createRoute({
  getParentRoute: () => team,
  path: '/credits',
  component: lazyPage(() => import('./credits/credits-page.tsx'), 'CreditsPage'),
})

const account = createRoute({
  getParentRoute: () => team,
  path: '/account',
  component: lazyPage(() => import('./account/account-page.tsx'), 'AccountPage'),
})

const help = createRoute({
  getParentRoute: () => team,
  path: '/help',
  component: lazyPage(() => import('./help/help-page.tsx'), 'HelpPage'),
})

const routes = root.addChildren([
  start,
  team.addChildren([
    teamStart,
    unitsRoute,
    newUnit,
    unit.addChildren([overview, terminal, code, logs, metrics, egress, files, forks, activity, settings]),
    stacks,
    stack,
    recipes,
    recipe,
    agents,
    newKey,
    agent,
    newHosted,
    hosted,
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
