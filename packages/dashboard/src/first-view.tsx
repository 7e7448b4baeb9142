// What the server takes from here to show the list of units before any script of the dashboard has come: names of styles,
// pictures and words. Built beside the dashboard, into `first-view.json`.

import BookOpen from 'lucide-react/icons/book-open'
import ChevronDown from 'lucide-react/icons/chevron-down'
import Ellipsis from 'lucide-react/icons/ellipsis'
import Search from 'lucide-react/icons/search'
import type { ComponentType, SVGProps } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { unitStates } from '../../../src/contract/states.ts'
import live from './shell/live-bar.module.css'
import { nav } from './shell/nav.ts'
import shell from './shell/shell.module.css'
import sidebar from './shell/sidebar.module.css'
import { FirstStill } from './start/first-hero.tsx'
import button from './ui/button.module.css'
import field from './ui/field.module.css'
import menu from './ui/menu.module.css'
import page from './ui/page-parts.module.css'
import { StateShape } from './ui/state.tsx'
import state from './ui/state.module.css'
import { FILTER, sortLabels, sorts } from './units/search.ts'
import table from './units/unit-table.module.css'
import units from './units/units-page.module.css'

const picture = (Icon: ComponentType<SVGProps<SVGSVGElement>>) =>
  renderToStaticMarkup(<Icon aria-hidden="true" />)

export const firstView = {
  styles: { shell, sidebar, live, button, field, menu, page, state, units, table },
  pictures: {
    search: picture(Search),
    docs: picture(BookOpen),
    down: picture(ChevronDown),
    more: picture(Ellipsis),
  },
  states: Object.fromEntries(
    unitStates.map((each) => [each, renderToStaticMarkup(<StateShape state={each} />)]),
  ),
  pages: nav.map(({ label, to, icon }) => ({ label, path: to, picture: picture(icon) })),
  filter: FILTER,
  sorts: sorts.map((sort) => ({ label: sortLabels[sort], isFirst: sort === 'created' })),
  empty: renderToStaticMarkup(<FirstStill />),
}
