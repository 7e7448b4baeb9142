// The navigation: team, search, pages, and today's cost.

import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import BookOpen from 'lucide-react/icons/book-open'
import ChevronDown from 'lucide-react/icons/chevron-down'
import Search from 'lucide-react/icons/search'
import { moneyQuery } from '../api/queries.ts'
import { euros } from '../../../../src/lib/money.ts'
import { Money } from '../ui/format.tsx'
import { Logo } from '../ui/logo.tsx'
import { Menu } from '../ui/menu.tsx'
import { useKeys } from './keys.ts'
import { nav } from './nav.ts'
import { openPalette, paletteKey } from './palette-state.ts'
import { useHere } from './team-context.ts'
import { readTheme, setTheme, themes } from './theme.ts'
import styles from './sidebar.module.css'

export function Sidebar() {
  const { team, me } = useHere()
  const navigate = useNavigate()
  useKeys(
    'Go to',
    nav.map(({ key, label, to }) => ({
      keys: `g ${key}`,
      label,
      run: () => void navigate({ to, params: { team: team.slug } }),
    })),
  )
  const teams = me.teams.map((each) => ({
    label: each.id === team.id ? `${each.name} ✓` : each.name,
    onSelect: () => void navigate({ to: '/t/$team/units', params: { team: each.slug } }),
  }))
  const theme = themes.map((each) => ({
    label: each === readTheme() ? `${themeLabels[each]} ✓` : themeLabels[each],
    onSelect: () => setTheme(each),
  }))
  return (
    <nav className={styles.sidebar} aria-label="Pages">
      <div className={styles.team}>
        <Menu
          label={`Team ${team.name}: change it`}
          items={[
            ...teams,
            'line',
            ...theme,
            'line',
            {
              label: `Your account (${me.user.email})`,
              onSelect: () => void navigate({ to: '/t/$team/account', params: { team: team.slug } }),
            },
          ]}
        >
          <Logo />
          <span className={styles.teamName}>{team.name}</span>
          <ChevronDown aria-hidden="true" />
        </Menu>
      </div>
      <button type="button" className={styles.search} onClick={openPalette}>
        <Search aria-hidden="true" />
        <span className={styles.label}>Search</span>
        <kbd className={styles.hint}>{paletteKey}</kbd>
      </button>
      <ul className={styles.pages}>
        {nav.map(({ label, to, icon: Icon }) => (
          <li key={label}>
            <Link
              to={to}
              params={{ team: team.slug }}
              className={styles.page}
              activeProps={{ 'aria-current': 'page' }}
            >
              <Icon aria-hidden="true" />
              <span className={styles.label}>{label}</span>
            </Link>
          </li>
        ))}
        <li className={styles.wideOnly}>
          <a href="/docs" className={styles.page}>
            <BookOpen aria-hidden="true" />
            <span className={styles.label}>Docs</span>
          </a>
        </li>
      </ul>
      <Today />
    </nav>
  )
}

const themeLabels = { system: 'System theme', light: 'Light theme', dark: 'Dark theme' } as const

function Today() {
  const { team } = useHere()
  const { data } = useQuery(moneyQuery(team.id))
  return (
    <p className={styles.today}>
      {data && (
        <>
          Today{' '}
          <b>
            <Money cents={data.spentTodayCents} />
          </b>
          {data.capCents !== null && ` of ${euros(data.capCents)}`}
          <br />
          Credits <Money cents={data.creditBalanceCents} />
        </>
      )}
    </p>
  )
}
